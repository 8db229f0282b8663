// SPDX-License-Identifier: MIT
#include <heed/training/detail/whole_power.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed::detail {
namespace {

TEST(WholePower, IsRepeatedMultiplication) {
  EXPECT_EQ(whole_power(0.5, 0), 1);
  EXPECT_EQ(whole_power(-3, 5), -243);
  EXPECT_EQ(whole_power(2, 1000), std::ldexp(1.0, 1000));
  for (const Index exponent : {1, 2, 7, 1000, 123456}) {
    EXPECT_NEAR(whole_power(0.999, exponent) / std::pow(0.999, double(exponent)), 1,
                1.2e-16 * static_cast<double>(exponent));
  }
}

}  // namespace
}  // namespace heed::detail
