// SPDX-License-Identifier: MIT
#include <heed/masks/policy.hpp>

#include <gtest/gtest.h>

#include <heed/masks/causal.hpp>

namespace heed::masks {
namespace {

struct OnlyMeaning {
  bool allows(Position at) const { return at.key == at.query; }
};
static_assert(MaskPolicy<OnlyMeaning> && !TiledMaskPolicy<OnlyMeaning>);
static_assert(TiledMaskPolicy<Causal> && LaneMaskPolicy<Causal> && !CheckedMaskPolicy<Causal>);
static_assert(!MaskPolicy<int>);

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

}  // namespace
}  // namespace heed::masks
