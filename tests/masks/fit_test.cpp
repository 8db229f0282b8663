// SPDX-License-Identifier: MIT
#include <heed/masks/detail/positions.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <heed/masks.hpp>

namespace heed::masks {
namespace {

bool any(Index, Index) { return true; }
bool any_score(Index, Index, Index, Index) { return true; }

/// What a mask says of a call; nothing if it fits.
std::string refusal(const Mask& mask, const MaskShape& shape) {
  try {
    mask.check(shape);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

struct Case {
  Mask mask;
  const char* words;
};

/// Of a batch of 2 and 2 heads with 10 tokens, each describes less or names what is not there.
std::vector<Case> too_small() {
  return {
      {Groups(std::vector<Index>(9)), "Groups: describes 9 tokens, the call has 10"},
      {consecutive_groups({4, 5}), "Groups: describes 9 tokens"},
      {GridNeighborhood{3, 3, 1}, "GridNeighborhood: describes 9 tokens, the call has 10"},
      {Segments({0, 4, 9}), "Segments: describes 9 tokens, the call has 10"},
      {Tree(5, {-1, 0, 0, 1}), "Tree: describes 9 tokens, the call has 10"},
      {BlockSparse(2, 3, 4, any), "BlockSparse: describes 8 queries, the call has 10"},
      {BlockSparse(3, 2, 4, any), "BlockSparse: describes 8 keys, the call has 10"},
      {MaskedToken({99}), "MaskedToken: names token 99, the call has 10"},
      {MaskedToken({3, 10}), "MaskedToken: names token 10, the call has 10"},
      {GlobalTokens({0, 10}), "GlobalTokens: names token 10, the call has 10"},
      {Prefix(50), "Prefix: names 50 tokens, the call has 10"},
      {Prefix(std::vector<Index>{3, 11}), "Prefix: names 11 tokens, the call has 10"},
      {Padding({3, 11}), "Padding: item 1 has keys [0, 11) of 10"},
      {ValidKeys(2, 9, any), "ValidKeys: made for 9 keys, used with 10; partial(mask)"},
      {ValidKeys(2, 11, any), "ValidKeys: made for 11 keys"},
      {Dense({1, 1, 9, 10}, any_score), "Dense: mask of (batch, heads, queries, keys) (1, 1, 9"},
      {Dense({1, 1, 10, 11}, any_score), "Dense: mask of"},
      {Dense({1, 1, 9, 10}, any_score, 0), "Dense: rows for the queries at positions 0 to 8"},
      {Dense({1, 1, 10, 10}, any_score, 1), "Dense: rows for the queries at positions 1 to 10"},
      {Dense({1, 1, 10, 9}, any_score, 0), "Dense: describes 9 keys, the call has 10"},
  };
}

TEST(Fit, AMaskThatSaysTooLittleIsRefused) {
  for (const auto& [mask, words] : too_small()) {
    EXPECT_EQ(refusal(mask, {2, 2, 10, 10}).substr(0, std::string(words).size()), words);
  }
}

TEST(Fit, ThroughEveryComposition) {
  for (const auto& [mask, words] : too_small()) {
    for (const Mask& composed :
         {Mask(mask & Causal{}), Mask(Causal{} & mask), Mask(mask | Causal{}),
          Mask(Causal{} | mask), Mask(~mask), Mask(~~(Full{} & ~mask)), Mask(Mask(mask)),
          Mask(PerHead({Causal{}, mask}))}) {
      EXPECT_EQ(refusal(composed, {2, 2, 10, 10}).substr(0, std::string(words).size()), words);
    }
  }
}

TEST(Fit, PartialOnPurposeFits) {
  for (const auto& [mask, words] : too_small()) {
    EXPECT_EQ(refusal(partial(mask), {2, 2, 10, 10}), "") << words;
    EXPECT_EQ(refusal(partial(mask & Causal{}), {2, 2, 10, 10}), "") << words;
    EXPECT_NE(refusal(partial(Causal{}) & mask, {2, 2, 10, 10}), "") << words;
  }
}

/// What describes a sequence serves its begin: a cache that grows, a prompt that comes in pieces.
TEST(Fit, AMaskOfPositionsMayDescribeMore) {
  const std::vector<Mask> sequences = {Groups(std::vector<Index>(20)),
                                       consecutive_groups({4, 16}),
                                       GridNeighborhood{4, 5, 1},
                                       Segments({0, 4, 20}),
                                       Tree(18, {-1, 0}),
                                       BlockSparse(5, 5, 4, any),
                                       Dense({2, 1, 20, 20}, any_score, 0)};
  for (const Mask& mask : sequences) {
    for (Index keys = 1; keys <= 20; ++keys) {
      EXPECT_EQ(refusal(mask, {2, 2, 1, keys}), "");
      EXPECT_EQ(refusal(mask, {2, 2, keys, keys}), "");
    }
    EXPECT_NE(refusal(mask, {2, 2, 1, 21}), "");
    EXPECT_NE(refusal(mask, {2, 2, 21, 10, 0}), "") << "queries past the end";
    EXPECT_NE(refusal(mask, {2, 2, 1, 10, 20}), "") << "a query past the end";
    EXPECT_EQ(refusal(mask, {2, 2, 15, 10}), "") << "queries before the first key";
  }
}

TEST(Fit, WhatIsPartialStillHasABatchHeadsAndSense) {
  const MaskShape shape{2, 2, 10, 10};
  EXPECT_NE(refusal(partial(Padding({3})), shape), "");
  EXPECT_NE(refusal(partial(Padding({3, -1})), shape), "");
  EXPECT_NE(refusal(partial(Padding({0, 4}, {10, 2})), shape), "");
  EXPECT_EQ(refusal(Padding({0, 4}, {10, 2}), shape), "Padding: item 1 has keys [4, 2) of 10");
  EXPECT_NE(refusal(partial(PerHead({Causal{}})), shape), "");
  EXPECT_NE(refusal(partial(ValidKeys(1, 5, any)), shape), "");
  EXPECT_NE(refusal(partial(Dense({3, 1, 1, 5}, any_score)), shape), "");
  EXPECT_NE(refusal(partial(GridNeighborhood{0, 3, 1}), shape), "");
  EXPECT_NE(refusal(partial(Strided{0}), shape), "");
}

TEST(Fit, WhereNobodyKnowsBatchAndHeads) {
  const MaskShape one_head{MaskShape::unknown, MaskShape::unknown, 10, 10};
  for (const Mask& mask :
       {Mask(Padding({3, 4})), Mask(PerHead({Causal{}, Causal{}, Full{}})), Mask(Prefix({1, 2, 3})),
        Mask(ValidKeys(7, 10, any)), Mask(Dense({5, 4, 10, 10}, any_score))}) {
    EXPECT_EQ(refusal(mask, one_head), "");
  }
}

}  // namespace
}  // namespace heed::masks
