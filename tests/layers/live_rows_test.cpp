// SPDX-License-Identifier: MIT
#include <heed/layers/detail/rows.hpp>

#include <limits>

#include <heed/layers/blocks.hpp>
#include <heed/masks.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/encoder_decoder.hpp>
#include <heed/models/language_model.hpp>
#include <heed/training/losses.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

constexpr double wild[] = {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), 1e38};

template <class L>
void expect_same_gradients(L& a, L& b, const char* what) {
  using T = typename L::Output::value_type;
  const auto x = flat_parameters<T>(a), y = flat_parameters<T>(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(std::memcmp(x[i].data, y[i].data, static_cast<std::size_t>(x[i].size) * sizeof(T)), 0)
        << x[i].name << ", " << what;
  }
}

/// Rows of padding: the last tokens of each item from its length on.
const std::vector<Index> lengths = {7, 3, 5, 0};
template <class T>
void fill_padding(Tensor<T, 3>& x, T value) {
  for (Index item = 0; item < x.extent(0); ++item) {
    for (Index token = lengths[static_cast<std::size_t>(item)]; token < x.extent(1); ++token) {
      for (Index i = 0; i < x.extent(2); ++i) x(item, token, i) = value;
    }
  }
}

/// A block over a padded batch, its gradients 0 behind the lengths: what padding holds changes no
/// bit of what is looked at.
template <class T>
void expect_padding_is_absent(BlockOptions options, const Mask& mask, const char* what) {
  options.model_dim = 12;
  options.heads = 2;
  options.hidden_dim = 10;
  Random random(1);
  const SelfAttentionBlock<T> block(options, random);
  std::mt19937_64 bits(2);
  auto x = random_tensor<T, 3>({4, 7, 12}, bits), grad = random_tensor<T, 3>({4, 7, 12}, bits);
  fill_padding(grad, T{0});
  fill_padding(x, T{1});
  typename SelfAttentionBlock<T>::Saved saved;
  auto y = block.forward(x, mask, saved);
  auto gradients = zeros_like(block);
  const auto grad_x = block.backward(grad, saved, gradients);
  fill_padding(y, T{0});
  for (const double value : wild) {
    fill_padding(x, static_cast<T>(value));
    typename SelfAttentionBlock<T>::Saved other_saved;
    auto other = block.forward(x, mask, other_saved);
    fill_padding(other, T{0});
    EXPECT_TRUE(same_bits(y, other)) << what << ", forward, " << value;
    auto other_gradients = zeros_like(block);
    EXPECT_TRUE(same_bits(grad_x, block.backward(grad, other_saved, other_gradients)))
        << what << ", gradient of x, " << value;
    expect_same_gradients(gradients, other_gradients, what);
  }
}

template <class T>
void expect_padding_is_absent_in_all_blocks() {
  const Mask padding = masks::Padding(lengths);
  for (const bool before : {true, false}) {
    expect_padding_is_absent<T>({.activation = ActivationKind::gelu, .norm_before = before},
                                padding, "encoder");
    expect_padding_is_absent<T>({.norm_before = before}, masks::Causal{}, "causal");
    expect_padding_is_absent<T>({.norm_before = before, .fused_projection = true},
                                masks::Causal{} & padding, "fused");
    BlockOptions llama{.kv_heads = 1,
                       .activation = ActivationKind::silu,
                       .gated = true,
                       .norm = NormKind::rms,
                       .norm_before = before,
                       .bias = false,
                       .positions = PositionKind::rotary};
    llama.query_key_norm = NormKind::rms;
    expect_padding_is_absent<T>(llama, masks::Causal{}, "llama");
  }
}

TEST(LiveRows, WhatPaddingHoldsChangesNoBitOfABlock) {
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    SCOPED_TRACE(simd::name(isa));
    simd::use(isa);
    expect_padding_is_absent_in_all_blocks<float>();
    expect_padding_is_absent_in_all_blocks<double>();
  }
}

/// Parameters that padding alone meets: the embedding of token 0.
template <class Model>
void set_padding_rows(Model& model, double value) {
  for_each_parameter(
      [&](std::string_view name, auto& parameter) {
        if (name.find("embedding.weight") == std::string_view::npos) return;
        std::fill_n(parameter.data(), parameter.extents().back(), static_cast<float>(value));
      },
      model);
}

/// `train(gradients)` gives the loss and adds to the gradients; neither depends on what padding is.
template <class Model, class Train>
void expect_training_without_padding(Model& model, const Train& train, const char* what) {
  double first_loss = 0;
  auto first = zeros_like(model);
  for (const double value : {0., wild[0], wild[1], wild[2]}) {
    set_padding_rows(model, value);
    auto gradients = zeros_like(model);
    const double loss = train(gradients);
    if (value == 0) {
      first_loss = loss;
      first = gradients;
    }
    EXPECT_TRUE(std::isfinite(loss));
    EXPECT_EQ(loss, first_loss) << value;
    expect_same_gradients(first, gradients, what);
  }
}

TEST(LiveRows, WhatPaddingHoldsChangesNoBitOfALanguageModelsTraining) {
  for (const bool llama : {false, true}) {
    auto options = llama ? LanguageModelOptions::llama() : LanguageModelOptions();
    options.vocab_size = 9;
    options.block.model_dim = 12;
    options.block.heads = 2;
    options.block.kv_heads = 2;
    options.layers = 2;
    options.block.hidden_dim = 10;
    options.max_length = 6;
    options.tied_head = false;
    options.block.dropout = 0.2;
    Random random(1);
    LanguageModel<float> model(options, random);
    const Tokens tokens({3, 6}, {1, 5, 2, 3, 8, 4, 7, 0, 0, 0, 0, 0, 2, 6, 6, 0, 0, 0});
    Tensor<Index, 2> targets({3, 6});
    for (Index i = 0; i < 18; ++i) targets.data()[i] = tokens.data()[i] == 0 ? -100 : i % 9;
    const auto train = [&](auto& gradients) {
      LanguageModel<float>::Saved saved;
      const auto logits = model.forward(tokens, masks::Causal{}, Noise{.seed = 3}, saved);
      const auto [loss, grad_logits] = cross_entropy(logits, targets);
      model.backward(grad_logits, saved, gradients);
      return loss;
    };
    expect_training_without_padding(model, train, llama ? "llama" : "gpt");
  }
}

TEST(LiveRows, WhatPaddingHoldsChangesNoBitOfATranslatorsTraining) {
  for (const bool before : {false, true}) {
    Random random(1);
    EncoderDecoder<float> model({.source_vocab_size = 7,
                                 .target_vocab_size = 9,
                                 .encoder_layers = 2,
                                 .decoder_layers = 2,
                                 .block = {.model_dim = 12,
                                           .heads = 3,
                                           .hidden_dim = 10,
                                           .activation = ActivationKind::relu,
                                           .norm_before = before,
                                           .positions = PositionKind::sinusoidal,
                                           .dropout = 0.2}},
                                random);
    // An item of nothing but padding is the last.
    const Tokens source({3, 4}, {1, 5, 2, 3, 6, 0, 0, 0, 0, 0, 0, 0});
    const Tokens target({3, 5}, {1, 8, 2, 0, 0, 1, 3, 4, 5, 6, 0, 0, 0, 0, 0});
    const auto made = masks::create_masks(source, 4, target, 5, 0);
    const EncoderDecoderMasks masks{made.source, made.target, made.memory};
    Tensor<Index, 2> targets({3, 5});
    for (Index i = 0; i < 15; ++i) targets.data()[i] = target.data()[i] == 0 ? -100 : i % 9;
    const auto train = [&](auto& gradients) {
      EncoderDecoder<float>::Saved saved;
      const auto logits = model.forward(source, target, masks, Noise{.seed = 3}, saved);
      const auto [loss, grad_logits] = cross_entropy(logits, targets);
      model.backward(grad_logits, saved, gradients);
      return loss;
    };
    expect_training_without_padding(model, train, before ? "norm before" : "norm after");
  }
}

TEST(LiveRows, WhatPaddingHoldsChangesNoBitOfAnEncodersTraining) {
  for (const bool before : {false, true}) {
    for (const auto positions : {PositionKind::learned, PositionKind::relative}) {
      Random random(1);
      auto options = EncoderOptions::bert({.model_dim = 12,
                                           .heads = 3,
                                           .positions = positions,
                                           .relative_reach = 3,
                                           .dropout = 0.2});
      options.vocab_size = options.max_length = 7;
      options.layers = 2;
      options.block.norm_before = before;
      Encoder<float> model(options, random);
      Tokens tokens({4, 7});
      std::mt19937_64 bits(2);
      auto grad = random_tensor<float, 3>({4, 7, 12}, bits);
      fill_padding(grad, 0.f);
      for (Index i = 0; i < 28; ++i) {
        const Index length = lengths[static_cast<std::size_t>(i / 7)];
        tokens.data()[i] = i % 7 < length ? 1 + i % 6 : 0;
      }
      const auto train = [&](auto& gradients) {
        Encoder<float>::Saved saved;
        auto y = model.forward(tokens, masks::Padding(lengths), {}, Noise{.seed = 3}, saved);
        fill_padding(y, 0.f);
        model.backward(grad, saved, gradients);
        return static_cast<double>(weighted_sum(y, grad));
      };
      expect_training_without_padding(model, train, before ? "norm before" : "norm after");
    }
  }
}

TEST(LiveRows, NaNThatIsLookedAtIsNotHidden) {
  Random random(1);
  const Linear<float> layer({.inputs = 3, .outputs = 2}, random);
  Tensor<float, 3> x({1, 4, 3}), grad({1, 4, 2});
  x(0, 1, 2) = NAN;
  grad(0, 1, 0) = 1;
  grad(0, 3, 1) = 1;
  auto gradients = zeros_like(layer);
  layer.backward(grad, x, gradients);
  EXPECT_TRUE(std::isnan(gradients.weight(0, 2)));
  EXPECT_FALSE(std::isnan(gradients.weight(0, 1)));
  grad(0, 1, 0) = NAN;  // a NaN is no 0
  gradients = zeros_like(layer);
  EXPECT_TRUE(std::isnan(layer.backward(grad, x, gradients)(0, 1, 0)));
  EXPECT_TRUE(std::isnan(gradients.weight(0, 0)));
  grad = Tensor<float, 3>({1, 4, 2});
  gradients = zeros_like(layer);
  layer.backward(grad, x, gradients);  // nothing is live
  for (const float value : gradients.weight) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace heed::test
