// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace heed::masks {
namespace {

TEST(Padding, RealKeysOfEachItem) {
  const Padding padding({3, 0});
  EXPECT_TRUE(padding.allows({0, 0, 9, 2}));
  EXPECT_FALSE(padding.allows({0, 0, 9, 3}));
  EXPECT_EQ(coverage_of(padding, Tile{1, 0, 0, 9, 0, 9}), Coverage::none);
  const Padding left({2}, {5});
  EXPECT_FALSE(left.allows({0, 0, 0, 1}));
  EXPECT_TRUE(left.allows({0, 0, 0, 4}));
}

TEST(Padding, ItemsThatWereNotGivenHaveNoKeys) {
  const Padding padding({3, 5});
  for (const Index item : {-1, 2, 7}) {
    EXPECT_FALSE(padding.allows({item, 0, 0, 0}));
    EXPECT_EQ(coverage_of(padding, Tile{item, 0, 0, 9, 0, 9}), Coverage::none);
  }
}

TEST(Padding, MustFitTheBatchAndTheKeys) {
  EXPECT_NO_THROW(Padding({3, 0}).check({2, 1, 5, 3}));
  EXPECT_THROW(Padding({3}).check({2, 1, 5, 3}), ShapeError);
  EXPECT_THROW(Padding({3, 4}).check({2, 1, 5, 3}), ShapeError);
  EXPECT_THROW(Padding({-1, 2}).check({2, 1, 5, 3}), ShapeError);
  EXPECT_THROW(Padding({1, 2}, {3}), ShapeError);
  EXPECT_THROW(Padding({-1}, {3}).check({1, 1, 5, 3}), ShapeError);
}

}  // namespace
}  // namespace heed::masks
