// SPDX-License-Identifier: MIT
#include <heed/attention/block_top_k.hpp>

#include <heed/attention/plan.hpp>
#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

TEST(BlockTopK, PicksTheBlocksWhoseMeanFitsBest) {
  // Keys of block i point along axis i % 4; queries of block 7 along axis 2.
  Tensor<float, 2> queries({64, 4}), keys({64, 4});
  for (Index token = 0; token < 64; ++token) {
    keys(token, token / 8 % 4) = 1;
    queries(token, 2) = 1;
  }
  const auto mask = block_top_k(queries, keys, 8, 3);
  // Two blocks along axis 2 (numbers 2 and 6), and their own.
  for (Index key = 0; key < 64; ++key) {
    const Index block = key / 8;
    EXPECT_EQ(mask.allows({0, 0, 60, key}), block == 2 || block == 6 || block == 7) << key;
  }
  // Of equals the first; nothing after the own block.
  for (Index key = 0; key < 64; ++key) {
    const Index block = key / 8;
    EXPECT_EQ(mask.allows({0, 0, 20, key}), block <= 2) << key;
    EXPECT_EQ(mask.allows({0, 0, 32, key}), block == 0 || block == 2 || block == 4) << key;
  }
}

TEST(BlockTopK, AttendsAsItsDenseForm) {
  const Shape shape{2, 4, 2, 100, 150, 8, 8};
  const Inputs<float> in(shape, 31);
  const auto mask = masks::Causal{} & block_top_k(in.queries, in.keys, 20, 2);
  expect_matches_reference<float>(shape, mask, 31);
  const auto share = plan(in.queries, in.keys, mask);
  EXPECT_GT(share.partial, 0);
  // All blocks: plain causal attention.
  const auto all = fused(shape, in, masks::Causal{} & block_top_k(in.queries, in.keys, 20, 8));
  EXPECT_TRUE(same_bits(all.out, fused(shape, in, masks::Causal{}).out));
}

TEST(BlockTopK, BlocksLargerThanTheSequenceAreOneBlock) {
  const Shape shape{1, 1, 1, 30, 30, 4, 4};
  const Inputs<float> in(shape, 78);
  const auto causal = fused(shape, in, masks::Causal{}).out;
  for (const Index block : {Index{30}, Index{1000}, std::numeric_limits<Index>::max()}) {
    const auto mask = masks::Causal{} & block_top_k(in.queries, in.keys, block, 1);
    EXPECT_TRUE(same_bits(fused(shape, in, mask).out, causal)) << block;
  }
}

TEST(BlockTopK, SaysWhatDoesNotFit) {
  Tensor<float, 2> queries({6, 4}), keys({5, 4}), other({6, 3});
  EXPECT_THROW(block_top_k(queries, keys, 2, 1), ShapeError);
  EXPECT_THROW(block_top_k(queries, other, 2, 1), ShapeError);
  EXPECT_THROW(block_top_k(queries, queries, 0, 1), ShapeError);
  EXPECT_THROW(block_top_k(queries, queries, 2, 0), ShapeError);
  const auto mask = block_top_k(queries, queries, 2, 1);
  Tensor<float, 3> heads({2, 6, 4}), out({2, 6, 4});
  EXPECT_THROW(attention(heads, heads, heads, mask, out), ShapeError);
}

}  // namespace
}  // namespace heed::test
