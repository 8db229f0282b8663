// SPDX-License-Identifier: MIT
// Batches of nothing, of sequences of nothing, of one token, of padding alone: computed, with
// gradients of 0 where there is nothing to learn from.
#include <gtest/gtest.h>

#include <heed/masks.hpp>
#include <heed/models.hpp>
#include <heed/training/losses.hpp>
#include <heed/training/optimizers.hpp>
#include <heed/training/train.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

LanguageModelOptions options_of(bool llama) {
  auto options = llama ? LanguageModelOptions::llama() : LanguageModelOptions();
  options.vocab_size = 7;
  options.block.model_dim = 6;
  options.block.heads = 3;
  options.layers = 2;
  options.block.hidden_dim = 5;
  options.max_length = 4;
  options.block.dropout = 0.1;
  return options;
}

template <class Model>
bool all_zero(const Model& gradients) {
  bool zero = true;
  for_each_parameter(
      [&](std::string_view, const auto& gradient) {
        for (const auto value : gradient) zero = zero && value == 0;
      },
      gradients);
  return zero;
}

/// Loss and gradients of a batch; the targets are ignored where `ignored`.
template <class Model, class Forward>
void expect_trains(Model model, const Forward& forward, const Extents<2>& extents, bool ignored) {
  typename Model::Saved saved;
  const auto logits = forward(model, saved);
  ASSERT_EQ(logits.extents(), (Extents<3>{extents[0], extents[1], 7}));
  Tensor<Index, 2> targets(extents);
  if (ignored) std::fill(targets.begin(), targets.end(), -100);
  const auto [loss, grad_logits] = cross_entropy(logits, targets);
  auto gradients = zeros_like(model);
  model.backward(grad_logits, saved, gradients);
  const bool nothing = ignored || targets.size() == 0;
  EXPECT_EQ(loss == 0, nothing);
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(all_zero(gradients), nothing);
  AdamW optimizer(model);
  EXPECT_TRUE(optimizer.step(model, gradients, {.max_gradient_norm = 1}).taken);
}

TEST(EmptyBatches, OfLanguageModels) {
  for (const bool llama : {false, true}) {
    Random random(1);
    const LanguageModel<float> model(options_of(llama), random);
    for (const Index batch : {0, 1, 2}) {
      for (const Index length : {0, 1, 4}) {
        SCOPED_TRACE(heed::detail::message(llama ? "llama " : "gpt ", batch, " of ", length));
        const Tokens tokens({batch, length});
        const masks::Padding padding(std::vector<Index>(static_cast<std::size_t>(batch), 0));
        const Mask causal = masks::Causal{}, nobody = causal & padding;
        for (const Mask& mask : {causal, nobody}) {
          const auto forward = [&](const auto& it, auto& saved) {
            return it.forward(tokens, mask, Noise{.seed = 1}, saved);
          };
          expect_trains(model, forward, {batch, length}, false);
          expect_trains(model, forward, {batch, length}, true);
          EXPECT_EQ(model.forward(tokens, mask).extents(), (Extents<3>{batch, length, 7}));
        }
      }
    }
  }
}

TEST(EmptyBatches, OfEncoders) {
  Random random(1);
  auto options = EncoderOptions::bert({.model_dim = 6, .heads = 2, .hidden_dim = 5});
  options.vocab_size = 7;
  options.max_length = 4;
  const Encoder<float> model(options, random);
  for (const Extents<2>& extents : {Extents<2>{0, 3}, Extents<2>{2, 0}, Extents<2>{2, 3}}) {
    Encoder<float>::Saved saved;
    const masks::Padding nobody(std::vector<Index>(static_cast<std::size_t>(extents[0]), 0));
    const auto hidden = model.forward(Tokens(extents), nobody, saved);
    EXPECT_EQ(hidden.extents(), (Extents<3>{extents[0], extents[1], 6}));
    for (const float value : hidden) EXPECT_TRUE(std::isfinite(value));
    auto gradients = zeros_like(model);
    model.backward(Tensor<float, 3>(hidden.extents()), saved, gradients);
    EXPECT_TRUE(all_zero(gradients));
    const std::vector<Index> none(static_cast<std::size_t>(extents[0]), 0);
    const auto pooled = mean_pool(hidden, none);
    for (const float value : pooled) EXPECT_EQ(value, 0);
  }
}

TEST(EmptyBatches, OfTranslators) {
  Random random(1);
  auto options = EncoderDecoderOptions::original(
      {.model_dim = 6, .heads = 2, .hidden_dim = 5, .dropout = 0.1});
  options.source_vocab_size = 5;
  options.target_vocab_size = 7;
  const EncoderDecoder<float> model(options, random);
  for (const Index batch : {0, 2}) {
    for (const Index sources : {0, 3}) {
      for (const Index targets : {0, 1, 2}) {
        SCOPED_TRACE(heed::detail::message(batch, " of ", sources, " to ", targets));
        const Tokens source({batch, sources}), target({batch, targets});  // 0: padding alone
        std::vector<EncoderDecoderMasks> tried = {{masks::Full{}, masks::Causal{}, masks::Full{}}};
        if (batch * sources * targets > 0) {
          const auto made = masks::create_masks(source, sources, target, targets, Index{0});
          tried.push_back({made.source, made.target, made.memory});
        }
        for (const auto& masks : tried) {
          const auto forward = [&](const auto& it, auto& saved) {
            return it.forward(source, target, masks, Noise{.seed = 1}, saved);
          };
          expect_trains(model, forward, {batch, targets}, false);
          expect_trains(model, forward, {batch, targets}, true);
        }
      }
    }
  }
}

TEST(EmptyBatches, OfNoSequences) {
  EXPECT_TRUE(make_batches({}, 0).empty());
  const auto batch = next_token_batch({}, {});
  EXPECT_EQ(batch.tokens.extents(), (Extents<2>{0, 0}));
  const std::vector<std::vector<Index>> one = {{4}};
  const std::vector<Index> first = {0};
  EXPECT_EQ(next_token_batch(one, first).tokens.extents(), (Extents<2>{1, 0}));
}

}  // namespace
}  // namespace heed::test
