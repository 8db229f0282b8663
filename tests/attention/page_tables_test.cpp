// SPDX-License-Identifier: MIT
#include <heed/attention/key_value_cache.hpp>

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace heed::detail {
namespace {

TEST(PageTables, AreListsThatGrow) {
  PageTables tables(3);
  std::vector<std::vector<Index>> expected(3);
  std::mt19937_64 bits(5);
  for (int step = 0; step < 2000; ++step) {
    const auto sequence = static_cast<Index>(bits() % 3), other = (sequence + 1) % 3;
    auto& list = expected[static_cast<std::size_t>(sequence)];
    switch (bits() % 8) {
      case 0:
        if (!list.empty()) {
          EXPECT_EQ(tables.last(sequence), list.back());
          tables.pop(sequence);
          list.pop_back();
        }
        break;
      case 1:
        if (bits() % 20 == 0) {
          tables.clear(sequence);
          list.clear();
        }
        break;
      case 2:
        if (bits() % 20 == 0) {
          tables.copy(tables, other, sequence);
          list = expected[static_cast<std::size_t>(other)];
        }
        break;
      default:
        tables.make_room(tables.size(sequence) + 1);
        tables.push(sequence, step);
        list.push_back(step);
    }
    for (Index s = 0; s < 3; ++s) {
      const auto& pages = expected[static_cast<std::size_t>(s)];
      ASSERT_EQ(std::vector<Index>(tables.of(s), tables.of(s) + tables.size(s)), pages) << step;
    }
  }
}

TEST(PageTables, CopiesAreTheirOwn) {
  PageTables tables(2);
  tables.make_room(9);
  for (Index page = 0; page < 9; ++page) tables.push(1, page);
  const PageTables before = tables;
  tables.at(1, 8) = -1;
  tables.copy(before, 1, 0);
  EXPECT_EQ(tables.last(0), 8);
  EXPECT_EQ(tables.last(1), -1);
  EXPECT_EQ(before.size(0), 0);
}

}  // namespace
}  // namespace heed::detail
