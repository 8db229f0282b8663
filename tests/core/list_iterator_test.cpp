// SPDX-License-Identifier: MIT
#include <heed/core/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace heed::detail {
namespace {

struct Squares {
  std::size_t operator[](std::size_t i) const { return i * i; }
  ListIterator<Squares> begin() const { return {*this, 0}; }
  ListIterator<Squares> end() const { return {*this, 4}; }
};

TEST(ListIterator, GoesThroughWhatTheListMakes) {
  static_assert(std::forward_iterator<ListIterator<Squares>>);
  const Squares squares;
  EXPECT_EQ(std::vector<std::size_t>(squares.begin(), squares.end()),
            (std::vector<std::size_t>{0, 1, 4, 9}));
  auto at = squares.begin();
  EXPECT_EQ(*at++, 0u);
  EXPECT_EQ(*++at, 4u);
  EXPECT_EQ(std::find(squares.begin(), squares.end(), 4u), at);
}

}  // namespace
}  // namespace heed::detail
