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

TEST(Error, IsAnInvalidArgument) {
  static_assert(std::is_base_of_v<std::invalid_argument, ShapeError>);
  EXPECT_THROW(throw_shape_error("x"), std::invalid_argument);
}

}  // namespace
}  // namespace heed
