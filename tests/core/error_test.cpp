// SPDX-License-Identifier: MIT
#include <heed/core/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

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
