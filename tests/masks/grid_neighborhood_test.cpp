// SPDX-License-Identifier: MIT
#include <heed/masks/sparse.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(GridNeighborhood, CellsAtMostRadiusAway) {
  const GridNeighborhood grid{.rows = 4, .columns = 5, .radius = 1};
  const auto at = [](Index row, Index column) { return row * 5 + column; };
  EXPECT_TRUE(grid.allows({0, 0, at(1, 1), at(2, 2)}));
  EXPECT_FALSE(grid.allows({0, 0, at(1, 1), at(1, 3)}));
  EXPECT_FALSE(grid.allows({0, 0, at(1, 4), at(2, 0)})) << "the rows do not wrap";
  EXPECT_FALSE(grid.allows({0, 0, 20, 20})) << "outside";
  EXPECT_EQ(grid.coverage({0, 0, at(0, 0), at(0, 4), at(2, 0), at(3, 4)}), Coverage::none);
  EXPECT_EQ(grid.coverage({0, 0, at(1, 1), at(1, 2), at(1, 1), at(1, 2)}), Coverage::full);
  EXPECT_THROW((GridNeighborhood{0, 5, 1}.check({})), InvalidArgument);
  EXPECT_THROW((GridNeighborhood{4, 5, -1}.check({})), InvalidArgument);
}

TEST(GridNeighborhood, OfOneColumnFromBeforeItsBeginning) {
  const GridNeighborhood grid{.rows = 5, .columns = 1, .radius = 1};
  std::uint64_t words[5];
  grid.lane_words({0, 0, -2, 61, 0, 4}, words);
  EXPECT_EQ(words[0], 0b1100u);
  EXPECT_EQ(words[1], 0b11100u);
  EXPECT_EQ(words[4], 0b1100000u);
}

}  // namespace
}  // namespace heed::masks
