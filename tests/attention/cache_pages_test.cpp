// SPDX-License-Identifier: MIT
#include <heed/attention/detail/cache_pages.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace heed::detail {
namespace {

TEST(CachePages, RowsInOnePageAreWhereTheyLieAndOthersCopied) {
  // Two heads, pages of 16 tokens of 3 numbers; the sequence's second page is the pool's first.
  std::vector<float> memory(2 * 2 * 16 * 3);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  const Index table[] = {1, 0};
  const Index* tables[] = {table};
  const CachePages pages{memory.data(), false, 3, 2, 16, tables};
  std::vector<float> scratch(96 * 3);
  const auto inside = pages.rows(0, 1, 4, 12, scratch.data());
  EXPECT_EQ(inside.data, memory.data() + 96 + 48 + 12);
  const auto across = pages.rows(0, 1, 14, 4, scratch.data());
  EXPECT_EQ(across.data, scratch.data());
  const std::vector<float> expected = {186, 187, 188, 189, 190, 191, 48, 49, 50, 51, 52, 53};
  EXPECT_EQ(std::vector<float>(scratch.begin(), scratch.begin() + 12), expected);
}

TEST(CachePages, NarrowRowsAreWidened) {
  std::vector<bfloat16> memory(16 * 20);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = bfloat16(static_cast<float>(i % 200));
  const Index table[] = {0};
  const Index* tables[] = {table};
  const CachePages pages{memory.data(), true, 20, 1, 16, tables};
  std::vector<float> scratch(96 * 20);
  std::vector<double> wide(96 * 20);
  pages.rows(0, 0, 3, 9, scratch.data());
  pages.rows(0, 0, 3, 9, wide.data());
  for (std::size_t i = 0; i < 180; ++i) {
    EXPECT_EQ(scratch[i], static_cast<float>(memory[60 + i]));
    EXPECT_EQ(wide[i], static_cast<double>(static_cast<float>(memory[60 + i])));
  }
}

}  // namespace
}  // namespace heed::detail
