// SPDX-License-Identifier: MIT
#include <heed/core/detail/message_part.hpp>

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace heed::detail {
namespace {

TEST(MessagePart, TextsOfEveryKind) {
  const std::string text = "text";
  const char* pointer = "pointer";
  EXPECT_EQ(message("literal ", text, ' ', pointer, std::string_view(" view!!", 6)),
            "literal text pointer view!");
  EXPECT_EQ(message(std::string("with\0zero", 9)).size(), 9u);
  EXPECT_EQ(message(), "");
}

TEST(MessagePart, NumbersToTheirEnds) {
  EXPECT_EQ(message(std::numeric_limits<Index>::min()), "-9223372036854775808");
  EXPECT_EQ(message(std::numeric_limits<unsigned long long>::max()), "18446744073709551615");
  EXPECT_EQ(message(-1, ",", -7L, ",", 3u, ",", static_cast<signed char>(-5)), "-1,-7,3,-5");
  EXPECT_EQ(message(std::numeric_limits<double>::lowest()).size(), 317u);
  EXPECT_EQ(message(0.25f, " ", -2.0), "0.250000 -2.000000");
}

TEST(MessagePart, Ranges) {
  const std::vector<Index> extents{2, -1};
  EXPECT_EQ(message(extents, std::span<const Index>(extents), std::array<Index, 1>{7}),
            "(2, -1)(2, -1)(7)");
  EXPECT_EQ(message(std::vector<unsigned>{1, 4000000000u}), "(1, 4000000000)");
  EXPECT_EQ(message(std::vector<std::vector<Index>>{{1, 2}, {}}), "((1, 2), ())");
}

}  // namespace
}  // namespace heed::detail
