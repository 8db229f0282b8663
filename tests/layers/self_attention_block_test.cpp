// SPDX-License-Identifier: MIT
#include <heed/layers/blocks.hpp>

#include <heed/masks.hpp>

#include "laws/layer_laws.hpp"
#include "support/attention_calls.hpp"

namespace heed::test {
namespace {

auto maker(const BlockOptions& options) {
  return [options](auto scalar) {
    Random random(1);
    return SelfAttentionBlock<decltype(scalar)>(options, random);
  };
}

TEST(SelfAttentionBlock, KeepsTheLawsNormBefore) {
  check_layer_laws(maker({.model_dim = 4, .heads = 2, .hidden_dim = 6}), {2, 3, 4},
                   {"attention_norm.weight", "attention_norm.bias", "attention.query.weight",
                    "attention.query.bias", "attention.key.weight", "attention.key.bias",
                    "attention.value.weight", "attention.value.bias", "attention.out.weight",
                    "attention.out.bias", "feed_forward_norm.weight", "feed_forward_norm.bias",
                    "feed_forward.up.weight", "feed_forward.up.bias", "feed_forward.down.weight",
                    "feed_forward.down.bias"},
                   false, MaskedCall{masks::Causal{}});
}

TEST(SelfAttentionBlock, KeepsTheLawsNormAfter) {
  check_layer_laws(
      maker({.model_dim = 4,
             .heads = 2,
             .hidden_dim = 6,
             .activation = ActivationKind::gelu,
             .norm_before = false,
             .fused_projection = true}),
      {2, 3, 4},
      {"attention_norm.weight", "attention_norm.bias", "attention.query_key_value.weight",
       "attention.query_key_value.bias", "attention.out.weight", "attention.out.bias",
       "feed_forward_norm.weight", "feed_forward_norm.bias", "feed_forward.up.weight",
       "feed_forward.up.bias", "feed_forward.down.weight", "feed_forward.down.bias"},
      false, MaskedCall{masks::Padding({3, 2})});
}

TEST(SelfAttentionBlock, KeepsTheLawsAsLlamaHasIt) {
  check_layer_laws(
      maker({.model_dim = 8,
             .heads = 4,
             .kv_heads = 2,
             .hidden_dim = 6,
             .activation = ActivationKind::silu,
             .gated = true,
             .norm = NormKind::rms,
             .bias = false,
             .positions = PositionKind::rotary}),
      {1, 3, 8},
      {"attention_norm.weight", "attention.query.weight", "attention.key.weight",
       "attention.value.weight", "attention.out.weight", "feed_forward_norm.weight",
       "feed_forward.up.weight", "feed_forward.gate.weight", "feed_forward.down.weight"},
      false, MaskedCall{masks::Causal{}});
}

TEST(SelfAttentionBlock, DropoutDrawsTheSameInBackward) {
  auto block = maker({.model_dim = 4, .heads = 2, .hidden_dim = 16, .dropout = 0.4})(double{});
  std::mt19937_64 bits(2);
  const auto x = random_tensor<double, 3>({2, 3, 4}, bits);
  const auto weights = random_tensor<double, 3>({2, 3, 4}, bits);
  SelfAttentionBlock<double>::Saved saved;
  const auto y = block.forward(x, masks::Causal{}, Noise{5}, saved);
  auto gradients = zeros_like(block);
  block.backward(weights, saved, gradients);
  const auto loss = [&] {
    SelfAttentionBlock<double>::Saved other;
    return weighted_sum(block.forward(x, masks::Causal{}, Noise{5}, other), weights);
  };
  auto& bias = *block.feed_forward.down.bias;
  const auto& found = *gradients.feed_forward.down.bias;
  expect_slopes("down.bias", bias.data(), found.data(), 4, loss, 1e-9);
  auto& weight = block.attention.projections.value->weight;
  const auto& found_weight = gradients.attention.projections.value->weight;
  expect_slopes("value.weight", weight.data(), found_weight.data(), 16, loss, 1e-9);
  EXPECT_FALSE(same_bits(y, block.forward(x, masks::Causal{})));
}

}  // namespace
}  // namespace heed::test
