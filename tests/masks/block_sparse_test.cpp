// SPDX-License-Identifier: MIT
#include <heed/masks/sparse.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace heed::masks {
namespace {

TEST(BlockSparse, SquaresOnAndOff) {
  const BlockSparse mask(2, 3, 4, [](Index row, Index column) { return row == column; });
  EXPECT_TRUE(mask.allows({0, 0, 3, 3}));
  EXPECT_FALSE(mask.allows({0, 0, 3, 4}));
  EXPECT_FALSE(mask.allows({0, 0, 8, 8})) << "below the layout";
  EXPECT_FALSE(mask.allows({0, 0, -1, 0}));
  EXPECT_EQ(mask.coverage({0, 0, 0, 3, 4, 11}), Coverage::none);
  EXPECT_EQ(mask.coverage({0, 0, 4, 7, 5, 6}), Coverage::full);
  EXPECT_EQ(mask.block(), 4);
  const auto all = [](Index, Index) { return true; };
  EXPECT_THROW(BlockSparse(1, 1, 0, all), ShapeError);
  EXPECT_THROW(BlockSparse(-1, 1, 4, all), ShapeError);
}

TEST(BlockSparse, SizesThatWouldOverflowAreRefused) {
  const auto all = [](Index, Index) { return true; };
  EXPECT_THROW(BlockSparse(4, 4, std::numeric_limits<Index>::max() / 8, all), ShapeError);
}

}  // namespace
}  // namespace heed::masks
