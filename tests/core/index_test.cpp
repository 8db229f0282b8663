// SPDX-License-Identifier: MIT
#include <heed/core/index.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace heed {
namespace {

TEST(Index, IsSignedAndCountsPast32Bits) {
  static_assert(std::is_signed_v<Index>);
  static_assert(sizeof(Index) == 8);
  const Index query = 3, key = 5;
  EXPECT_EQ(query - key, -2);
  EXPECT_EQ((Index{1} << 33) + 1 - (Index{1} << 33), 1);
}

}  // namespace
}  // namespace heed
