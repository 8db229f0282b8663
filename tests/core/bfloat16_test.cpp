// SPDX-License-Identifier: MIT
#include <heed/core/bfloat16.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heed {
namespace {

TEST(Bfloat16, RoundsToTheNearestEven) {
  EXPECT_EQ(float(bfloat16(1.f)), 1.f);
  EXPECT_EQ(float(bfloat16(1.f + 0x1p-8f)), 1.f);
  EXPECT_EQ(float(bfloat16(1.f + 0x1.8p-7f)), 1.f + 0x1p-6f);
  EXPECT_EQ(float(bfloat16(-std::numeric_limits<float>::infinity())),
            -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(sizeof(bfloat16), 2u);
}

}  // namespace
}  // namespace heed
