// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include <heed/masks/combine.hpp>

namespace heed::masks {
namespace {

TEST(SlidingWindow, BoundsAreInclusiveAndZeroIsItself) {
  const SlidingWindow window{.left = 2, .right = 1};
  EXPECT_FALSE(window.allows({0, 0, 5, 2}));
  EXPECT_TRUE(window.allows({0, 0, 5, 3}));
  EXPECT_TRUE(window.allows({0, 0, 5, 6}));
  EXPECT_FALSE(window.allows({0, 0, 5, 7}));
  const SlidingWindow self{.left = 0, .right = 0};
  EXPECT_TRUE(self.allows({0, 0, 5, 5}));
  EXPECT_FALSE(self.allows({0, 0, 5, 4}));
}

TEST(SlidingWindow, LastNCountsTheQueryItself) {
  EXPECT_TRUE(last_n(3).allows({0, 0, 9, 7}));
  EXPECT_FALSE(last_n(3).allows({0, 0, 9, 6}));
  EXPECT_FALSE(last_n(3).allows({0, 0, 9, 10}));
  EXPECT_THROW(last_n(0), InvalidArgument);
}

TEST(SlidingWindow, BesideTheFirstKeys) {
  const auto mask = Causal{} & (first_n(4) | last_n(256));
  EXPECT_TRUE(mask.allows({0, 0, 1000, 3}));
  EXPECT_FALSE(mask.allows({0, 0, 1000, 4}));
  EXPECT_FALSE(mask.allows({0, 0, 1000, 744}));
  EXPECT_TRUE(mask.allows({0, 0, 1000, 745}));
  EXPECT_FALSE(mask.allows({0, 0, 1, 3})) << "the first keys that are to come";
  EXPECT_TRUE(first_n(4).allows({0, 0, -1, 3}));
  EXPECT_EQ(coverage_of(mask, {0, 0, 640, 703, 96, 191}), Coverage::none);
  EXPECT_EQ(coverage_of(mask, {0, 0, 640, 703, 0, 95}), Coverage::partial);
  EXPECT_EQ(coverage_of(mask, {0, 0, 640, 703, 0, 3}), Coverage::full);
  EXPECT_EQ(coverage_of(first_n(0), {0, 0, 0, 63, 0, 95}), Coverage::none);
  EXPECT_THROW(first_n(-1), InvalidArgument);
  EXPECT_THROW(FirstKeys{-1}.check({}), InvalidArgument);
}

TEST(SlidingWindow, OpenSidesAndRefusedNumbers) {
  EXPECT_TRUE((SlidingWindow{.left = unbounded, .right = 0}.allows({0, 0, 1000, 0})));
  EXPECT_NO_THROW((SlidingWindow{.left = unbounded, .right = unbounded}.check({})));
  EXPECT_THROW((SlidingWindow{.left = -2}.check({})), InvalidArgument);
  EXPECT_THROW((SlidingWindow{.left = 0, .right = -3}.check({})), InvalidArgument);
}

TEST(SlidingWindow, AHugeSideIsAnOpenOne) {
  constexpr Index huge = std::numeric_limits<Index>::max();
  const SlidingWindow window{.left = huge, .right = huge};
  const Tile tile{0, 0, -70, -7, 0, 1};
  std::uint64_t words[2] = {};
  fill_lane_words(window, tile, words);
  EXPECT_TRUE(window.allows({0, 0, -70, 1}));
  EXPECT_EQ(coverage_of(window, tile), Coverage::full);
  EXPECT_EQ(words[0] & words[1], ~std::uint64_t{0});
  EXPECT_NO_THROW(window.check({}));
}

}  // namespace
}  // namespace heed::masks
