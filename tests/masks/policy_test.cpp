// SPDX-License-Identifier: MIT
#include <heed/masks/policy.hpp>

#include <gtest/gtest.h>

#include <heed/masks/intervals.hpp>

namespace heed::masks {
namespace {

struct OnlyMeaning {
  bool allows(Position at) const { return at.key == at.query; }
};
static_assert(MaskPolicy<OnlyMeaning> && !TiledMaskPolicy<OnlyMeaning>);
static_assert(IntervalMaskPolicy<Causal> && !CheckedMaskPolicy<Causal>);
static_assert(!MaskPolicy<int>);

bool before(Index query, Index key) { return key < query; }
struct Table {  // like a matrix of scores: called with two numbers, but with no answer
  float operator()(Index, Index) const { return 1; }
};
static_assert(MaskPolicy<decltype(&before)> && !MaskPolicy<Table>);

TEST(Policy, AMeaningAloneIsAMask) {
  const OnlyMeaning mask;
  EXPECT_EQ(coverage_of(mask, {}), Coverage::partial);
  EXPECT_TRUE(heed::depends_on_head(mask)) << "unless it says otherwise";
  std::uint64_t words[3];
  fill_lane_words(mask, {0, 0, 5, 9, 6, 8}, words);
  EXPECT_EQ(words[0], 2u);
  EXPECT_EQ(words[2], 8u);
  EXPECT_NO_THROW(check_mask(mask, {}));
}

TEST(Policy, ACallableIsAMask) {
  const auto odd = [](Index query, Index key) { return (query + key) % 2 == 1; };
  const auto of_head = [wanted = Index{1}](Position at) { return at.head == wanted; };
  EXPECT_TRUE(allows(odd, {0, 0, 3, 2}));
  EXPECT_FALSE(allows(odd, {0, 0, 3, 3}));
  EXPECT_TRUE(allows(&before, {0, 0, 3, 2}));
  EXPECT_TRUE(allows(of_head, {0, 1, 0, 0}));
  EXPECT_FALSE(allows(of_head, {1, 0, 1, 1}));
  EXPECT_FALSE(heed::depends_on_head(odd));
  EXPECT_TRUE(heed::depends_on_head(of_head));
  EXPECT_TRUE(asks_every_score(odd));
  EXPECT_EQ(coverage_of(odd, {}), Coverage::partial);
  std::uint64_t words[2];
  fill_lane_words(odd, {0, 0, 4, 7, 8, 9}, words);
  EXPECT_EQ(words[0], 0b1010u);
  EXPECT_EQ(words[1], 0b0101u);
}

TEST(Policy, LanesBetweenAreClipped) {
  EXPECT_EQ(lanes_between(0, 63), ~std::uint64_t{0});
  EXPECT_EQ(lanes_between(-9, 0), 1u);
  EXPECT_EQ(lanes_between(63, 99), std::uint64_t{1} << 63);
  EXPECT_EQ(lanes_between(5, 4), 0u);
  EXPECT_EQ(lanes_between(64, 70), 0u);
  EXPECT_EQ(lanes_between(2, 4), 28u);
}

TEST(Policy, MasksWithoutLaneWordsAreAskedAboutEveryScore) {
  EXPECT_TRUE(asks_every_score(OnlyMeaning{}));
  EXPECT_FALSE(asks_every_score(Causal{}));
}

#if defined(HEED_CHECKED) || !defined(NDEBUG)
struct MovesBack {
  KeyRange keys(Position at) const { return {0, 100 - at.query}; }
};
struct Zigzag {  // the first and the last query of a tile tell nothing
  KeyRange keys(Position at) const { return {at.query, at.query % 2 == 0 ? 90 : 80}; }
};
TEST(Policy, RangesThatMoveBackAreNoticed) {
  EXPECT_DEATH(coverage_of(MovesBack{}, {0, 0, 0, 63, 0, 95}),
               "heed expects before <= after .*that the ranges of a mask's keys never move back");
  std::uint64_t words[96];
  EXPECT_NO_THROW(coverage_of(Zigzag{}, {0, 0, 0, 62, 0, 95}));
  EXPECT_DEATH(fill_lane_words(Zigzag{}, {0, 0, 0, 62, 0, 95}, words), "before <= after");
}
#endif

}  // namespace
}  // namespace heed::masks
