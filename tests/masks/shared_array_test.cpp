// SPDX-License-Identifier: MIT
#include <heed/masks/shared_array.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include <heed/masks/dense.hpp>
#include <heed/masks/groups.hpp>
#include <heed/masks/padding.hpp>

namespace heed::masks {
namespace {

TEST(SharedArray, CopiesAreTheSameArray) {
  const detail::SharedArray<int> array({4, 5, 6});
  detail::SharedArray<int> copy;
  EXPECT_EQ(copy.size(), 0);
  copy = array;
  EXPECT_EQ(copy.begin(), array.begin());
  EXPECT_EQ(copy.end() - copy.begin(), 3);
  EXPECT_EQ(copy[2], 6);
}

TEST(SharedArray, KnowsItsIndices) {
  const detail::SharedArray<int> array({4, 5, 6});
  EXPECT_TRUE(array.has(0));
  EXPECT_TRUE(array.has(2));
  EXPECT_FALSE(array.has(3));
  EXPECT_FALSE(array.has(-1));
  EXPECT_FALSE(array.has(std::numeric_limits<Index>::min()));
  EXPECT_FALSE(detail::SharedArray<int>().has(0));
}

TEST(SharedArray, MasksWithArraysAreAFewWords) {
  EXPECT_LE(sizeof(Padding), 16 * sizeof(void*));
  EXPECT_LE(sizeof(Dense), 16 * sizeof(void*));
  // A million copies of a million groups: gigabytes, and minutes, if each had its own.
  const Groups groups(std::vector<Index>(1 << 20, 7));
  bool seen = true;
  for (int copy = 0; copy < 1 << 20; ++copy) seen = seen && Groups(groups).allows({0, 0, copy, 0});
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace heed::masks
