// SPDX-License-Identifier: MIT
#include <heed/layers/cached_attention.hpp>

#include <heed/masks/causal.hpp>

#include "laws/layer_laws.hpp"
#include "support/attention_calls.hpp"

namespace heed::test {
namespace {

MultiHeadAttention<double> made() {
  Random random(1);
  return {{.model_dim = 16, .heads = 4, .kv_heads = 2, .positions = PositionKind::rotary}, random};
}

TEST(CachedAttention, UnevenTokensGiveTheBitsOfWholeSequences) {
  const auto layer = made();
  std::mt19937_64 bits(2);
  const auto a = random_tensor<double, 3>({1, 9, 16}, bits),
             b = random_tensor<double, 3>({1, 9, 16}, bits);
  const auto whole_a = layer.forward(a, masks::Causal{}),
             whole_b = layer.forward(b, masks::Causal{});
  KeyValueCache<double> cache(CacheShape::contiguous(2, 2, 4, 4, 9));
  const Index cuts[][2] = {{0, 0}, {2, 5}, {3, 6}, {3, 6}, {9, 6}, {9, 9}};
  for (std::size_t i = 1; i < std::size(cuts); ++i) {
    const auto& from = cuts[i - 1];
    const auto& to = cuts[i];
    const Index counts[] = {to[0] - from[0], to[1] - from[1]};
    const auto x = side_by_side(tokens_of(a, from[0], to[0]), tokens_of(b, from[1], to[1]));
    const auto expected =
        side_by_side(tokens_of(whole_a, from[0], to[0]), tokens_of(whole_b, from[1], to[1]));
    EXPECT_TRUE(same_bits(cached_attention(layer, x, counts, cache, masks::Causal{}), expected))
        << "call " << i;
  }
  EXPECT_EQ(cache.length(0), 9);
  EXPECT_EQ(cache.length(1), 9);
}

TEST(CachedAttention, RefusesCountsThatDoNotFit) {
  const auto layer = made();
  KeyValueCache<double> cache(CacheShape::contiguous(2, 2, 4, 4, 9));
  const Tensor<double, 3> x({1, 3, 16}), two({2, 3, 16});
  const auto call = [&](const Tensor<double, 3>& tokens, std::vector<Index> counts) {
    cached_attention(layer, tokens, counts, cache, masks::Causal{});
  };
  EXPECT_THROW(call(x, {3}), ShapeError);
  EXPECT_THROW(call(x, {1, 1}), ShapeError);
  EXPECT_THROW(call(x, {4, -1}), ShapeError);
  EXPECT_THROW(call(two, {3, 3}), ShapeError);
  EXPECT_EQ(cache.length(0), 0);
}

}  // namespace
}  // namespace heed::test
