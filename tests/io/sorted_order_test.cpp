// SPDX-License-Identifier: MIT
#include <heed/io/detail/tensor_file.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed::detail {
namespace {

TEST(SortedOrder, WhereTheSmallestStandsComesFirst) {
  const std::vector<std::string> words = {"b", "", "c", "ab"};
  const auto order =
      sorted_order(words.size(), [&](std::size_t a, std::size_t b) { return words[a] < words[b]; });
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 3, 0, 2}));
  EXPECT_TRUE(sorted_order(0, [](std::size_t, std::size_t) { return false; }).empty());
}

}  // namespace
}  // namespace heed::detail
