// SPDX-License-Identifier: MIT
#include <heed/attention/detail/pass.hpp>

#include <gtest/gtest.h>

#include <algorithm>

#include <heed/masks.hpp>

namespace heed::detail {
namespace {

struct Block {
  std::uint64_t words[simd::key_block] = {};
  VisibleKeys seen;
};

template <class M>
Block look(const M& mask, Tile tile) {
  Block block;
  block.seen = visible_keys(MaskRef(mask), tile, block.words);
  return block;
}

TEST(VisibleKeys, FollowCoverageWithoutLaneWords) {
  EXPECT_EQ(look(masks::Causal{}, {0, 0, 0, 9, 10, 20}).seen.count, 0);
  const auto full = look(masks::Causal{}, {0, 0, 50, 60, 10, 20}).seen;
  EXPECT_EQ(full.first, 10);
  EXPECT_EQ(full.count, 11);
  EXPECT_EQ(full.words, nullptr);
}

TEST(VisibleKeys, AreCutToTheRunThatIsSeen) {
  const auto block = look(masks::SlidingWindow{.left = 2, .right = 1}, {0, 0, 40, 43, 0, 95});
  EXPECT_EQ(block.seen.first, 38);
  EXPECT_EQ(block.seen.count, 7);  // 38 … 44
  EXPECT_FALSE(block.seen.holes);
  EXPECT_EQ(block.seen.words[0], 1u);  // key 38: query 40 only
  EXPECT_EQ(block.seen.words[6], 8u);  // key 44: query 43 only
}

TEST(VisibleKeys, APartialAnswerThatIsFullNeedsNoWords) {
  const auto seen =
      look(masks::predicate([](Index, Index) { return true; }), {0, 0, 0, 63, 0, 95}).seen;
  EXPECT_EQ(seen.count, 96);
  EXPECT_EQ(seen.words, nullptr);
}

TEST(VisibleKeys, BitsPastTheLastQueryAreCleared) {
  struct Careless {
    bool allows(Position at) const { return at.key != 3; }
    void lane_words(Tile tile, std::uint64_t* words) const {
      for (Index i = 0; i < tile.keys(); ++i) words[i] = tile.first_key + i == 3 ? ~7u : ~0ull;
    }
  };
  const auto block = look(Careless{}, {0, 0, 0, 2, 0, 9});
  EXPECT_TRUE(block.seen.holes);
  EXPECT_EQ(block.seen.words[2], 7u);
  EXPECT_EQ(block.seen.words[3], 0u);
}

TEST(SharedLaneWords, AsksTheMaskOncePerKeyBlock) {
  int asked = 0;
  const auto counted = masks::predicate([&asked](Index query, Index key) {
    ++asked;
    return key <= query && key % 7 != 3;
  });
  const MaskRef mask(counted);
  SharedLaneWords shared(3);
  for (int head = 0; head < 3; ++head) {
    for (Index key = 0; key < 200; key += simd::key_block) {
      const Tile tile{0, head, 100, 163, key, std::min<Index>(key + simd::key_block, 200) - 1};
      std::uint64_t words[simd::key_block];
      const VisibleKeys expected = visible_keys(mask, tile, words);
      asked = head == 0 ? 0 : asked;
      const VisibleKeys seen = shared.visible_keys(mask, tile, key / simd::key_block);
      ASSERT_EQ(seen.first, expected.first);
      ASSERT_EQ(seen.count, expected.count);
      for (Index i = 0; i < seen.count; ++i) ASSERT_EQ(seen.words[i], expected.words[i]);
    }
  }
  asked = 0;
  shared.visible_keys(mask, {0, 7, 100, 163, 0, 95}, 0);
  EXPECT_EQ(asked, 0);
  shared.forget();
  shared.visible_keys(mask, {0, 7, 100, 163, 0, 95}, 0);
  EXPECT_GT(asked, 0);
}

TEST(DropUnseen, MovesTheRestTogether) {
  std::uint64_t words[] = {5, 0, 0, 9, 0, 1};
  Index kept[6];
  EXPECT_EQ(drop_unseen(words, 6, kept), 3);
  EXPECT_EQ(words[0], 5u);
  EXPECT_EQ(words[1], 9u);
  EXPECT_EQ(words[2], 1u);
  EXPECT_EQ(kept[0], 0);
  EXPECT_EQ(kept[1], 3);
  EXPECT_EQ(kept[2], 5);
}

}  // namespace
}  // namespace heed::detail
