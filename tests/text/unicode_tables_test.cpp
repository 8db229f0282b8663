// SPDX-License-Identifier: MIT
#include <heed/text/detail/unicode_tables.hpp>

#include <gtest/gtest.h>

#include <string_view>

#include <heed/text/unicode.hpp>

namespace heed::detail {
namespace {

TEST(UnicodeTables, HoldDigitsOfTheirNumbersAndEndWithOne) {
  for (const std::string_view table :
       {packed_character_classes, packed_without_accents, packed_lower_case}) {
    EXPECT_EQ(
        table.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"),
        std::string_view::npos);
    unicode::detail::PackedNumbers numbers(table);
    std::size_t count = 0;
    for (; numbers.more(); ++count) numbers.next();
    EXPECT_GT(count, 500u);
  }
}

TEST(UnicodeTables, RunsLieInsideUnicode) {
  char32_t first = 0;
  for (unicode::detail::PackedNumbers numbers(packed_character_classes); numbers.more();) {
    first += numbers.next();
    EXPECT_LT(numbers.next(), 128u);
  }
  EXPECT_LE(static_cast<unsigned>(first), 0x10ffffu);
}

}  // namespace
}  // namespace heed::detail
