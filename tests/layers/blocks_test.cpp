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

// A vector of blocks that grows moves their weights and does not copy them.
static_assert(std::is_nothrow_move_constructible_v<SelfAttentionBlock<float>>);
static_assert(std::is_nothrow_move_constructible_v<CrossAttentionBlock<float>>);

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

TEST(SelfAttentionBlock, KeepsTheLawsAsQwen2HasIt) {
  check_layer_laws(
      maker({.model_dim = 4,
             .heads = 2,
             .kv_heads = 1,
             .hidden_dim = 6,
             .gated = true,
             .norm = NormKind::rms,
             .bias = false,
             .query_key_value_bias = true,
             .positions = PositionKind::rotary}),
      {1, 3, 4},
      {"attention_norm.weight", "attention.query.weight", "attention.query.bias",
       "attention.key.weight", "attention.key.bias", "attention.value.weight",
       "attention.value.bias", "attention.out.weight", "feed_forward_norm.weight",
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

/// The block on the first tokens with the others as its memory.
template <class T>
struct WithMemory {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = typename CrossAttentionBlock<T>::Saved;
  static constexpr Index targets = 3;

  Output forward(const Input& both, const Mask& memory_mask) const {
    return block.forward(tokens_of(both, 0, targets), tokens_of(both, targets, both.extent(1)),
                         masks::Causal{}, memory_mask);
  }
  Output forward(const Input& both, const Mask& memory_mask, Saved& saved) const {
    return block.forward(tokens_of(both, 0, targets), tokens_of(both, targets, both.extent(1)),
                         masks::Causal{}, memory_mask, saved);
  }
  Input backward(const Output& grad, const Saved& saved, WithMemory& gradients) const {
    Input grad_memory(saved.cross_attention.key->extents());
    const auto grad_x = block.backward(grad, saved, gradients.block, grad_memory);
    return side_by_side(grad_x, grad_memory);
  }
  static auto members(auto& layer) { return Members{member("", layer.block)}; }

  CrossAttentionBlock<T> block;
};

TEST(CrossAttentionBlock, KeepsTheLaws) {
  for (const bool before : {true, false}) {
    check_layer_laws(
        [before](auto scalar) {
          using T = decltype(scalar);
          Random random(1);
          return WithMemory<T>{CrossAttentionBlock<T>({.model_dim = 4,
                                                       .heads = 2,
                                                       .hidden_dim = 5,
                                                       .activation = ActivationKind::silu,
                                                       .norm_before = before},
                                                      random)};
        },
        {2, 3 + 4, 4}, {"attention_norm.weight",        "attention_norm.bias",
                        "attention.query.weight",       "attention.query.bias",
                        "attention.key.weight",         "attention.key.bias",
                        "attention.value.weight",       "attention.value.bias",
                        "attention.out.weight",         "attention.out.bias",
                        "cross_attention_norm.weight",  "cross_attention_norm.bias",
                        "cross_attention.query.weight", "cross_attention.query.bias",
                        "cross_attention.key.weight",   "cross_attention.key.bias",
                        "cross_attention.value.weight", "cross_attention.value.bias",
                        "cross_attention.out.weight",   "cross_attention.out.bias",
                        "feed_forward_norm.weight",     "feed_forward_norm.bias",
                        "feed_forward.up.weight",       "feed_forward.up.bias",
                        "feed_forward.down.weight",     "feed_forward.down.bias"},
        false, MaskedCall{masks::Padding({4, 2})});
  }
}

Tensor<double, 3> twice(const Tensor<double, 3>& x) {
  auto y = x;
  for (double& value : y) value *= 2;
  return y;
}

TEST(Residual, AddsThePartOfTheNormOrNormsTheSum) {
  Random random(1);
  const Tensor<double, 3> x({1, 1, 4}, {1, 5, -2, 3});
  const Residual<double> before({.model_dim = 4}, random),
      after({.model_dim = 4, .norm_before = false}, random);
  const auto normed = before.norm.forward(x);
  const auto y = before.forward(x, twice);
  for (Index i = 0; i < 4; ++i) EXPECT_NEAR(y(0, 0, i), x(0, 0, i) + 2 * normed(0, 0, i), 1e-15);
  auto sum = twice(x);
  sum += x;
  EXPECT_TRUE(same_bits(after.forward(x, twice), after.norm.forward(sum)));
}

TEST(Residual, DropsThePartAlone) {
  Random random(2);
  const Residual<double> residual({.model_dim = 4, .dropout = 1}, random);
  const Tensor<double, 3> x({1, 1, 4}, {1, 5, -2, 3});
  Residual<double>::Saved saved;
  EXPECT_TRUE(same_bits(residual.forward(x, Noise{3}, saved, twice), x));
  EXPECT_FALSE(same_bits(residual.forward(x, Noise{}, saved, twice), x));
}

TEST(BlockOptions, ReachThePartsOfABlock) {
  const BlockOptions options{.model_dim = 8,
                             .heads = 2,
                             .kv_heads = 1,
                             .norm = NormKind::rms,
                             .bias = false,
                             .positions = PositionKind::rotary,
                             .rotary = {.base = 7},
                             .dropout = 0.5};
  const auto attention = detail::attention_options(options);
  EXPECT_EQ(attention.kv_heads, 1);
  EXPECT_FALSE(attention.bias || attention.output_bias);
  EXPECT_EQ(attention.positions, PositionKind::rotary);
  EXPECT_EQ(attention.rotary.base, 7);
  for (const bool bias : {false, true}) {
    const auto own = detail::attention_options({.bias = !bias, .query_key_value_bias = bias});
    EXPECT_EQ(own.bias, bias);
    EXPECT_EQ(own.output_bias, !bias);
  }
  const auto cross = detail::cross_attention_options(options);
  EXPECT_EQ(cross.positions, PositionKind::none);
  EXPECT_TRUE(cross.top_left);
  const auto feed_forward = detail::feed_forward_options(options);
  Random random(1);
  EXPECT_EQ(FeedForward<float>(feed_forward, random).up.weight.extent(0), 32);
  EXPECT_EQ(feed_forward.dropout, 0.5);
  EXPECT_EQ(detail::norm_options(options).kind, NormKind::rms);
}

}  // namespace
}  // namespace heed::test
