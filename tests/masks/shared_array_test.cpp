// SPDX-License-Identifier: MIT
#include <heed/core/owned_array.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <heed/masks/dense.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/tokens.hpp>

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

TEST(SharedArray, TakesListsOfAnyKind) {
  const std::vector<Index> vector = {7, 8};
  const std::array<Index, 2> array = {7, 8};
  for (const detail::SharedArray<Index>& list :
       {detail::SharedArray<Index>(vector), detail::SharedArray<Index>(std::span(vector)),
        detail::SharedArray<Index>(array), detail::SharedArray<Index>({7, 8}),
        detail::SharedArray<Index>(vector.begin(), vector.end())}) {
    ASSERT_EQ(list.size(), 2);
    EXPECT_EQ(list[0], 7);
    EXPECT_EQ(list[1], 8);
  }
  static_assert(!std::is_convertible_v<Index, detail::SharedArray<Index>>, "a size is no list");
}

/// Counts how many of its kind live.
struct Counted {
  explicit Counted(int& counter) : living(&counter) { ++*living; }
  Counted(const Counted& other) : Counted(*other.living) {}
  ~Counted() { --*living; }
  int* living;
};

TEST(SharedArray, ElementsLiveAsLongAsTheLastCopy) {
  int living = 0;
  {
    auto array = detail::SharedArray<Counted>::made(3, [&](Index) { return Counted(living); });
    EXPECT_EQ(living, 3);
    const auto copy = array;
    array = detail::SharedArray<Counted>();
    EXPECT_EQ(living, 3);
    EXPECT_EQ(copy.size(), 3);
  }
  EXPECT_EQ(living, 0);
}

TEST(SharedArray, AnErrorWhileItIsMadeLeavesNothing) {
  int living = 0;
  const auto make = [&](Index i) {
    if (i == 2) throw std::runtime_error("no third");
    return Counted(living);
  };
  EXPECT_THROW(detail::SharedArray<Counted>::made(5, make), std::runtime_error);
  EXPECT_EQ(living, 0);
  const auto one = [](Index) { return Index{1}; };
  EXPECT_THROW(detail::SharedArray<Index>::made(std::numeric_limits<Index>::max(), one),
               std::bad_alloc);
}

TEST(SharedArray, FilledBeginsWithZeros) {
  const auto array = detail::SharedArray<Index>::filled(3, [](Index* values) { values[1] = 5; });
  EXPECT_EQ(array[0], 0);
  EXPECT_EQ(array[1], 5);
  EXPECT_EQ(array[2], 0);
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
