// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Causal, ItselfAndBefore) {
  EXPECT_TRUE(Causal{}.allows({0, 0, 4, 4}));
  EXPECT_FALSE(Causal{}.allows({0, 0, 4, 5}));
  EXPECT_FALSE(Causal{}.allows({0, 0, -1, 0})) << "a query before the first key sees nothing";
}

TEST(Causal, TilesAgainstTheDiagonal) {
  EXPECT_EQ(coverage_of(Causal{}, Tile{0, 0, 10, 19, 20, 29}), Coverage::none);
  EXPECT_EQ(coverage_of(Causal{}, Tile{0, 0, 10, 20, 20, 29}), Coverage::partial);
  EXPECT_EQ(coverage_of(Causal{}, Tile{0, 0, 29, 40, 20, 29}), Coverage::full);
  std::uint64_t words[3];
  fill_lane_words(Causal{}, {0, 0, 10, 73, 9, 11}, words);
  EXPECT_EQ(words[0], ~std::uint64_t{0});
  EXPECT_EQ(words[1], ~std::uint64_t{0});
  EXPECT_EQ(words[2], ~std::uint64_t{0} << 1);
}

}  // namespace
}  // namespace heed::masks
