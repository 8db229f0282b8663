// SPDX-License-Identifier: MIT
// Gradients, or what forward saved, of another shape: a ShapeError, before any gradient is written.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <heed/layers.hpp>
#include <heed/masks.hpp>
#include <heed/models.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

template <class Model>
bool all_zero(const Model& gradients) {
  bool zero = true;
  for_each_parameter(
      [&](std::string_view, const auto& tensor) {
        for (const auto value : tensor) zero = zero && value == 0;
      },
      gradients);
  return zero;
}

/// backward(gradients) throws a ShapeError and leaves the gradients 0.
template <class Model, class Backward>
void expect_refused(Model gradients, const Backward& backward) {
  SCOPED_TRACE(testing::Message() << parameter_count(gradients) << " parameters");
  set_zero(gradients);
  EXPECT_THROW(backward(gradients), ShapeError);
  EXPECT_TRUE(all_zero(gradients));
}

Tensor<float, 3> random_grad(const Extents<3>& extents) {
  std::mt19937_64 bits(5);
  return random_tensor<float, 3>(extents, bits);
}

const Tokens tokens({2, 3}, {1, 4, 0, 2, 2, 3});

template <class Options>
Options small() {
  Options options;
  options.block = {.model_dim = 8, .heads = 2};
  options.max_length = 6;
  return options;
}
auto language_model() {
  auto options = small<LanguageModelOptions>();
  options.vocab_size = 5;
  options.layers = 2;
  return options;
}
auto encoder() {
  auto options = small<EncoderOptions>();
  options.vocab_size = 5;
  options.layers = 2;
  options.segments = 2;
  return options;
}
auto translator() {
  auto options = small<EncoderDecoderOptions>();
  options.source_vocab_size = 5;
  options.target_vocab_size = 6;
  return options;
}

TEST(BackwardChecks, ALanguageModelRefusesGradientsOfOtherModels) {
  Random random(1);
  const auto options = language_model();
  const LanguageModel<float> model(options, random);
  LanguageModel<float>::Saved saved;
  const auto grad = random_grad(model.forward(tokens, masks::Causal{}, saved).extents());
  const auto refused = [&](const LanguageModelOptions& other) {
    expect_refused(LanguageModel<float>(other, random),
                   [&](auto& gradients) { model.backward(grad, saved, gradients); });
  };
  auto other = options;
  other.max_length = 2;
  refused(other);
  other = options, other.vocab_size = 3;
  refused(other);
  other = options, other.layers = 1;
  refused(other);
  other = options, other.block.norm = NormKind::rms;
  refused(other);
  other = options, other.block.bias = false;
  refused(other);
  other = options, other.block.positions = PositionKind::relative;
  refused(other);
  other = options, other.tied_head = false;
  refused(other);
  LanguageModel<float> none;
  EXPECT_THROW(model.backward(grad, saved, none), ShapeError);
}

TEST(BackwardChecks, ModelsRefuseWhatAnotherForwardSaved) {
  Random random(2);
  const LanguageModel<float> model(language_model(), random);
  auto gradients = zeros_like(model);
  LanguageModel<float>::Saved saved, empty;
  const auto grad = random_grad(model.forward(tokens, masks::Causal{}, saved).extents());
  const auto backward = [&](const Tensor<float, 3>& from, const LanguageModel<float>::Saved& with) {
    expect_refused(gradients, [&](auto& to) { model.backward(from, with, to); });
  };
  backward(grad, empty);
  backward(random_grad({2, 3, 4}), saved);
  backward(random_grad({2, 4, 5}), saved);
  backward(Tensor<float, 3>({3, 3, 5}), saved);
  auto fewer = language_model();
  fewer.layers = 1;
  LanguageModel<float>(fewer, random).forward(tokens, masks::Causal{}, saved);
  backward(grad, saved);
}

TEST(BackwardChecks, EncodersAndTranslatorsRefuseTheSame) {
  Random random(3);
  const Encoder<float> model(encoder(), random);
  Encoder<float>::Saved saved;
  const auto grad = random_grad(model.forward(tokens, masks::Full{}, saved).extents());
  auto other = encoder();
  other.segments = 0;
  expect_refused(Encoder<float>(other, random),
                 [&](auto& gradients) { model.backward(grad, saved, gradients); });
  expect_refused(zeros_like(model), [&](auto& gradients) {
    model.backward(random_grad({2, 2, 8}), saved, gradients);
  });

  const EncoderDecoder<float> both(translator(), random);
  EncoderDecoder<float>::Saved saved_both;
  const EncoderDecoderMasks all{masks::Full{}, masks::Causal{}, masks::Full{}};
  const auto grad_both = random_grad(
      both.forward(tokens, tokens, all, EncoderDecoderPositions{}, Noise{}, saved_both).extents());
  auto larger = translator();
  larger.source_vocab_size = 9;
  expect_refused(EncoderDecoder<float>(larger, random),
                 [&](auto& gradients) { both.backward(grad_both, saved_both, gradients); });
  larger = translator(), larger.decoder_layers = 3;
  expect_refused(EncoderDecoder<float>(larger, random),
                 [&](auto& gradients) { both.backward(grad_both, saved_both, gradients); });
}

TEST(BackwardChecks, LayersRefuseGradientsOfOtherShapes) {
  Random random(4);
  const auto x = random_grad({2, 3, 8});
  const auto check = [&](const auto& layer, auto other) {
    typename std::remove_cvref_t<decltype(layer)>::Saved saved;
    const auto y = layer.forward(x, saved);
    expect_refused(other, [&](auto& to) { layer.backward(y, saved, to); });
    expect_refused(zeros_like(layer), [&](auto& to) {
      layer.backward(random_grad({2, 2, y.extent(2)}), saved, to);
    });
  };
  check(Linear<float>(8, 4, random), Linear<float>({8, 4, false}, random));
  check(Linear<float>(8, 4, random), Linear<float>(8, 5, random));
  check(Norm<float>({.dim = 8}), Norm<float>({.dim = 8, .bias = false}));
  check(Norm<float>({.kind = NormKind::rms, .dim = 8}), Norm<float>());
  check(FeedForward<float>({.model_dim = 8, .hidden_dim = 9}, random),
        FeedForward<float>({.model_dim = 8, .hidden_dim = 7}, random));
  check(FeedForward<float>({.model_dim = 8, .hidden_dim = 9, .gated = true}, random),
        FeedForward<float>({.model_dim = 8, .hidden_dim = 9}, random));
}

TEST(BackwardChecks, AttentionRefusesGradientsOfOtherShapes) {
  Random random(5);
  const auto x = random_grad({2, 3, 8});
  const MultiHeadAttention<float> layer({.model_dim = 8, .heads = 2}, random);
  MultiHeadAttention<float>::Saved saved, empty;
  const auto y = layer.forward(x, masks::Full{}, saved);
  MultiHeadAttentionOptions fused{.model_dim = 8, .heads = 2};
  fused.fused = true;
  expect_refused(MultiHeadAttention<float>(fused, random),
                 [&](auto& to) { layer.backward(y, saved, to); });
  const auto gradients = zeros_like(layer);
  expect_refused(gradients, [&](auto& to) { layer.backward(y, empty, to); });
  for (const Extents<3> wrong : {Extents<3>{2, 5, 8}, Extents<3>{3, 3, 8}, Extents<3>{2, 3, 7}}) {
    // All zeros too, as of padding, which takes another way.
    expect_refused(gradients, [&](auto& to) { layer.backward(random_grad(wrong), saved, to); });
    expect_refused(gradients,
                   [&](auto& to) { layer.backward(Tensor<float, 3>(wrong), saved, to); });
  }
  Tensor<float, 3> grad_key({2, 4, 8}), grad_value({2, 3, 8});
  expect_refused(gradients, [&](auto& to) { layer.backward(y, saved, to, grad_key, grad_value); });
}

/// Blocks of which each differs from the first in one part of what its forward pass saves.
std::vector<BlockOptions> other_blocks() {
  std::vector<BlockOptions> all(9, BlockOptions{.model_dim = 8, .heads = 2});
  all[1].heads = 4;
  all[2].hidden_dim = 9;
  all[3].head_dim = 3;
  all[4].gated = true;
  all[5].kv_heads = 1;
  all[6].query_key_norm = NormKind::rms;
  all[7].head_dim = 2, all[7].heads = 4, all[7].query_key_norm = NormKind::rms;
  all[8].model_dim = 12;
  return all;
}

TEST(BackwardChecks, BlocksRefuseWhatOtherBlocksSaved) {
  Random random(9);
  const auto options = other_blocks();
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (std::size_t j = 0; j < options.size(); ++j) {
      SCOPED_TRACE(testing::Message() << i << " of " << j);
      if (i == j || (i < 2 && j == i + 6)) continue;  // differ in norms alone, which are not read
      const SelfAttentionBlock<float> block(options[i], random), other(options[j], random);
      SelfAttentionBlock<float>::Saved saved;
      const auto y = other.forward(random_grad({2, 3, other.attention.options.model_dim}), saved);
      expect_refused(zeros_like(block), [&](auto& to) { block.backward(y, saved, to); });
    }
  }
}

TEST(BackwardChecks, BlocksRefuseMixturesOfTwoPasses) {
  Random random(10);
  const SelfAttentionBlock<float> block({.model_dim = 8, .heads = 2}, random);
  SelfAttentionBlock<float>::Saved saved, longer;
  const auto grad = random_grad({2, 3, 8});
  block.forward(grad, saved);
  block.forward(random_grad({2, 5, 8}), longer);
  const auto refused = [&](auto part) {
    auto mixed = saved;
    mixed.*part = longer.*part;
    expect_refused(zeros_like(block), [&](auto& to) { block.backward(grad, mixed, to); });
  };
  using Saved = SelfAttentionBlock<float>::Saved;
  refused(&Saved::attention);
  refused(&Saved::feed_forward);
  refused(&Saved::attention_residual);
  refused(&Saved::feed_forward_residual);
}

TEST(BackwardChecks, ASavedMayBeUsedByOneLayerAfterAnother) {
  Random random(11);
  const auto x = random_grad({2, 3, 8});
  FeedForward<float>::Saved saved;
  FeedForward<float>({.model_dim = 8, .gated = true}, random).forward(x, saved);
  const FeedForward<float> plain({.model_dim = 8}, random);
  plain.forward(x, saved);
  auto gradients = zeros_like(plain);
  EXPECT_NO_THROW(plain.backward(x, saved, gradients));
}

TEST(BackwardChecks, ABlockRefusesGradientsOfAnotherMemory) {
  Random random(12);
  const CrossAttentionBlock<float> block({.model_dim = 8, .heads = 2}, random);
  CrossAttentionBlock<float>::Saved saved, longer;
  const auto grad = random_grad({2, 3, 8}), memory = random_grad({2, 5, 8});
  block.forward(grad, memory, masks::Causal{}, masks::Full{}, saved);
  block.forward(random_grad({2, 4, 8}), memory, masks::Causal{}, masks::Full{}, longer);
  for (const Extents<3> wrong : {Extents<3>{2, 4, 8}, Extents<3>{}, Extents<3>{2, 5, 7}}) {
    Tensor<float, 3> grad_memory(wrong);
    expect_refused(zeros_like(block),
                   [&](auto& to) { block.backward(grad, saved, to, grad_memory); });
  }
  saved.cross_attention = longer.cross_attention;
  Tensor<float, 3> grad_memory({2, 5, 8});
  expect_refused(zeros_like(block),
                 [&](auto& to) { block.backward(grad, saved, to, grad_memory); });
}

TEST(BackwardChecks, ModelsRefuseMixturesOfTwoPasses) {
  Random random(13);
  const auto masks = EncoderDecoderMasks{};
  const EncoderDecoder<float> model(translator(), random);
  EncoderDecoder<float>::Saved saved, longer;
  const Tokens source({2, 5});
  const auto grad = random_grad(model.forward(tokens, tokens, masks, saved).extents());
  model.forward(source, tokens, masks, longer);
  const auto refused = [&](auto part) {
    auto mixed = saved;
    mixed.*part = longer.*part;
    expect_refused(zeros_like(model), [&](auto& to) { model.backward(grad, mixed, to); });
  };
  using Saved = EncoderDecoder<float>::Saved;
  refused(&Saved::encoder);
  refused(&Saved::memory);
  refused(&Saved::blocks);
  model.forward(tokens, source, masks, longer);
  refused(&Saved::input);
  refused(&Saved::blocks);
  refused(&Saved::norm);
  refused(&Saved::head);

  const Encoder<float> reads(encoder(), random);
  Encoder<float>::Saved read, others;
  const auto grad_read = random_grad(reads.forward(tokens, masks::Full{}, read).extents());
  reads.forward(source, others);
  read.segments = others.segments;
  expect_refused(zeros_like(reads), [&](auto& to) { reads.backward(grad_read, read, to); });
  EXPECT_THROW(reads.check_saved(read), ShapeError);
  EXPECT_NO_THROW(reads.check_saved(others));
}

TEST(BackwardChecks, TheInputOfAModelRefusesGradientsOfOtherTokens) {
  Random random(14);
  const TokenInput<float> input(
      {.vocab_size = 5, .model_dim = 4, .positions = PositionKind::learned, .max_length = 9},
      random);
  TokenInput<float>::Saved saved;
  input.forward(tokens, Noise{}, saved);
  for (const Extents<3> wrong : {Extents<3>{2, 2, 4}, Extents<3>{1, 3, 4}, Extents<3>{2, 3, 5}}) {
    expect_refused(zeros_like(input),
                   [&](auto& to) { input.backward(random_grad(wrong), saved, to); });
  }
  auto gradients = zeros_like(input);
  saved.embedding.tokens(1, 2) = 5;
  EXPECT_THROW(input.backward(random_grad({2, 3, 4}), saved, gradients), InvalidArgument);
  EXPECT_TRUE(all_zero(gradients));
}

TEST(BackwardChecks, LearnedPositionsRefuseOtherTables) {
  Random random(8);
  const LearnedPositions<float> layer({6, 8}, random);
  LearnedPositions<float>::Saved saved;
  layer.forward(random_grad({2, 3, 8}), saved);
  expect_refused(LearnedPositions<float>({2, 8}, random), [&](auto& to) {
    layer.backward(random_grad({2, 3, 8}), saved, to);
  });
  for (const Extents<3> wrong :
       {Extents<3>{2, 7, 8}, Extents<3>{2, 3, 6}, Extents<3>{2, 4, 8}, Extents<3>{1, 3, 8}}) {
    expect_refused(zeros_like(layer),
                   [&](auto& to) { layer.backward(random_grad(wrong), saved, to); });
  }
}

TEST(BackwardChecks, EmbeddingsRefuseOtherTokensAndTables) {
  Random random(6);
  const Embedding<float> layer({.vocab_size = 5, .dim = 4}, random);
  Embedding<float>::Saved saved, empty;
  const auto y = layer.forward(tokens, saved);
  expect_refused(Embedding<float>({.vocab_size = 3, .dim = 4}, random),
                 [&](auto& to) { layer.backward(y, saved, to); });
  expect_refused(Embedding<float>(), [&](auto& to) { layer.backward(y, saved, to); });
  const auto gradients = zeros_like(layer);
  expect_refused(gradients, [&](auto& to) { layer.backward(y, empty, to); });
  expect_refused(gradients, [&](auto& to) { layer.backward(random_grad({2, 2, 4}), saved, to); });
  expect_refused(gradients, [&](auto& to) { layer.backward(random_grad({2, 3, 2}), saved, to); });
}

TEST(BackwardChecks, ANormRefusesABiasOfAnotherSize) {
  Norm<float> norm({.dim = 8});
  norm.bias = Tensor<float, 1>({2});
  EXPECT_THROW(norm.forward(random_grad({2, 3, 8})), ShapeError);
}

TEST(ModelChecks, ADeviationThatIsNone) {
  Random random(7);
  auto options = language_model();
  for (const double none : {double{NAN}, -1.0, HUGE_VAL}) {
    options.init_std = none;
    EXPECT_THROW(LanguageModel<float>(options, random), InvalidArgument);
    EXPECT_THROW(LearnedPositions<float>({.max_length = 3, .dim = 2, .init_std = none}, random),
                 InvalidArgument);
  }
  options.init_std = 0;
  EXPECT_NO_THROW(LanguageModel<float>(options, random));
}

/// What an InvalidArgument says.
template <class Make>
std::string refusal_of(const Make& make) {
  try {
    make();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "none";
}

TEST(ModelChecks, SizesThatOverflowAreNamed) {
  Random random(7);
  constexpr Index most = std::numeric_limits<Index>::max();
  const auto attention = [&](MultiHeadAttentionOptions options) {
    options.model_dim = 4;
    options.positions = PositionKind::relative;
    return refusal_of([&] { MultiHeadAttention<float>(options, random); });
  };
  for (const Index reach : {most, most / 2, Index{0}, Index{-1}}) {
    const std::string said = attention({.heads = 2, .relative_reach = reach});
    EXPECT_NE(said.find("relative_reach " + std::to_string(reach)), said.npos) << said;
  }
  const std::string heads = attention({.heads = Index{1} << 40, .head_dim = Index{1} << 30});
  EXPECT_NE(heads.find("fewer or smaller heads; model_dim 4, heads 1099511627776"), heads.npos)
      << heads;
  const std::string wide = refusal_of([&] { FeedForward<float>({.model_dim = most / 2}, random); });
  EXPECT_NE(wide.find("FeedForward: model_dim 4611686018427387903"), wide.npos) << wide;
  const std::string table = refusal_of([&] { Embedding<float>(-3, 2, random); });
  EXPECT_EQ(table, "Embedding: vocabulary -3, dim 2; expected 1 or more");
}

TEST(ModelChecks, FactorsThatAreNone) {
  Random random(7);
  for (const double none : {double{NAN}, double{INFINITY}}) {
    auto options = encoder();
    options.embedding_factor = none;
    EXPECT_THROW(Encoder<float>(options, random), InvalidArgument);
    MultiHeadAttentionOptions attention{.model_dim = 8, .heads = 2};
    attention.scale = none;
    EXPECT_THROW(MultiHeadAttention<float>(attention, random), InvalidArgument);
  }
  auto options = encoder();
  options.segments = -1;
  EXPECT_EQ(refusal_of([&] { Encoder<float>(options, random); }),
            "Encoder: segments -1, expected 0 or more");
}

TEST(ModelChecks, SizesBelowZeroAndStrayArguments) {
  Random random(7);
  auto negative = language_model();
  negative.layers = -1;
  EXPECT_THROW(LanguageModel<float>(negative, random), InvalidArgument);
  negative.layers = 1, negative.max_length = -5;
  negative.block.positions = PositionKind::rotary;
  EXPECT_THROW(LanguageModel<float>(negative, random), InvalidArgument);
  auto encodes = encoder();
  encodes.layers = -1;
  EXPECT_THROW(Encoder<float>(encodes, random), InvalidArgument);
  auto translates = translator();
  translates.decoder_layers = -2;
  EXPECT_THROW(EncoderDecoder<float>(translates, random), InvalidArgument);

  auto plain = encoder();
  plain.segments = 0;
  const Encoder<float> model(plain, random);
  Tokens kinds({2, 3});
  EXPECT_NO_THROW(model.forward(tokens, masks::Full{}, kinds));
  kinds(1, 2) = 1;
  EXPECT_THROW(model.forward(tokens, masks::Full{}, kinds), InvalidArgument);
  EXPECT_THROW(model.forward(tokens, masks::Full{}, Tokens({3, 2})), ShapeError);
  const MultiHeadAttention<float> layer({.model_dim = 8, .heads = 2}, random);
  EXPECT_THROW(
      layer.forward(random_grad({2, 3, 8}), masks::Full{}, Positions(Tensor<Index, 2>({2, 4}))),
      ShapeError);
}

}  // namespace
}  // namespace heed::test
