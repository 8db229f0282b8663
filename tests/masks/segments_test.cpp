// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Segments, DocumentsSeeThemselves) {
  const Segments documents({0, 3, 3, 5});
  EXPECT_TRUE(documents.allows({0, 0, 0, 2}));
  EXPECT_FALSE(documents.allows({0, 0, 2, 3}));
  EXPECT_TRUE(documents.allows({0, 0, 4, 3}));
  EXPECT_FALSE(documents.allows({0, 0, 5, 5})) << "outside";
  EXPECT_FALSE(documents.allows({0, 0, -1, 0})) << "outside";
  EXPECT_THROW(Segments({1, 3}), InvalidArgument);
  EXPECT_THROW(Segments({0, 3, 2}), InvalidArgument);
  EXPECT_THROW(Segments({}), InvalidArgument);
}

TEST(Segments, HugeSegmentsCostNoMemory) {
  const Segments mask({0, 100, Index{1} << 60});
  EXPECT_TRUE(mask.allows({0, 0, 100, Index{1} << 59}));
  EXPECT_EQ(coverage_of(mask, Tile{0, 0, 100, 163, 200, 295}), Coverage::full);
  EXPECT_EQ(coverage_of(mask, Tile{0, 0, 100, 163, 4, 99}), Coverage::none);
}

}  // namespace
}  // namespace heed::masks
