// SPDX-License-Identifier: MIT
#include <heed/core/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
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
}

TEST(MessagePart, RealNumbersAsAPersonWritesThem) {
  EXPECT_EQ(message(0.25f, " ", -2.0, " ", 0.1f, " ", 0.1, " ", 1e6), "0.25 -2 0.1 0.1 1000000");
  EXPECT_EQ(message(1e-6, " ", 0.99999999, " ", 1.0 / 3), "1e-06 0.99999999 0.3333333333333333");
  EXPECT_EQ(message(1.0f / 3, " ", 1e15, " ", 2.5e15f), "0.33333334 1e+15 2.5e+15");
  EXPECT_EQ(message(std::numeric_limits<double>::lowest()), "-1.7976931348623157e+308");
  EXPECT_EQ(message(-std::numeric_limits<double>::infinity(), " ", -0.0), "-inf -0");
  EXPECT_EQ(message(std::numeric_limits<double>::quiet_NaN()).substr(0, 3), "nan");
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

namespace heed {
namespace {

template <class... Parts>
std::string thrown(const Parts&... parts) {
  try {
    throw_shape_error(parts...);
  } catch (const ShapeError& error) {
    return error.what();
  }
}

TEST(Error, MessageIsThePartsInOrder) {
  EXPECT_EQ(thrown("keys have ", Index{12}, " tokens, values ", 10u, '!', std::string(" sorry")),
            "keys have 12 tokens, values 10! sorry");
  EXPECT_EQ(thrown(-3, " ", 1.5), "-3 1.5");
}

TEST(Error, RangesPrintAsExtents) {
  EXPECT_EQ(thrown(std::array<Index, 4>{2, 4, 10, 64}), "(2, 4, 10, 64)");
  EXPECT_EQ(thrown(std::vector<int>{}), "()");
  EXPECT_EQ(thrown(std::vector<std::string>{"a", "b"}), "(a, b)");
}

TEST(Error, AWrongShapeIsAWrongArgument) {
  static_assert(std::is_base_of_v<InvalidArgument, ShapeError>);
  static_assert(std::is_base_of_v<std::invalid_argument, InvalidArgument>);
  EXPECT_THROW(throw_shape_error("x"), ShapeError);
  EXPECT_THROW(throw_shape_error("x"), std::invalid_argument);
  EXPECT_THROW(throw_invalid_argument("x"), InvalidArgument);
}

TEST(Error, AllOfThemAreCaughtAsOneOrAsTheStandards) {
  try {
    throw_invalid_argument("rate ", -1.0);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rate -1");
  }
  try {
    throw_shape_error("keys have ", 2);
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "keys have 2");
    EXPECT_NE(dynamic_cast<const Error*>(&error), nullptr);
  }
}

}  // namespace
}  // namespace heed
