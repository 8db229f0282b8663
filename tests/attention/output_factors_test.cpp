// SPDX-License-Identifier: MIT
#include <heed/attention/detail/forward_pass.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heed::detail {
namespace {

TEST(OutputFactors, AreOneOverTheSumAndZeroWithoutKeys) {
  float maximum[64] = {}, sum[64] = {}, factors[64];
  sum[1] = 4;
  find_output_factors<float>(nullptr, {maximum, sum, nullptr}, 2, factors);
  EXPECT_EQ(factors[0], 0.f);
  EXPECT_EQ(factors[1], 0.25f);
}

TEST(OutputFactors, ASinkIsOneMoreTermOfTheSum) {
  for (const double sink : {-50.0, 0.3, 60.0, 3000.0}) {
    double maximum[64], sum[64] = {}, factors[64];
    for (double& m : maximum) m = std::numeric_limits<double>::lowest();
    maximum[1] = 2;
    sum[1] = 4;  // 4 · 2² = 16 in all
    find_output_factors(&sink, {maximum, sum, nullptr}, 2, factors);
    EXPECT_EQ(factors[0], 0.0);
    EXPECT_NEAR(maximum[0] + std::log2(sum[0]), sink / std::log(2.0), 1e-9);
    const double whole = 16 + std::exp(sink);
    EXPECT_NEAR(factors[1], 4 / whole, 1e-14);
    if (sink < 100) {
      EXPECT_NEAR(maximum[1] + std::log2(sum[1]), std::log2(whole), 1e-12);
    }
  }
}

TEST(OutputFactors, NaNIsSeenAndNotLost) {
  float maximum[64], sum[64] = {}, factors[64];
  for (float& m : maximum) m = std::numeric_limits<float>::lowest();
  sum[0] = std::numeric_limits<float>::quiet_NaN();
  sum[1] = 1;
  maximum[1] = -1000;  // nothing beside the sink
  const float sink = 0.3f;
  find_output_factors(&sink, {maximum, sum, nullptr}, 3, factors);
  EXPECT_TRUE(std::isnan(factors[0]));
  EXPECT_TRUE(saw_keys(factors[0]));
  EXPECT_EQ(factors[1], 0.f);
  EXPECT_TRUE(saw_keys(factors[1]));
  EXPECT_EQ(factors[2], 0.f);
  EXPECT_FALSE(saw_keys(factors[2]));
}

}  // namespace
}  // namespace heed::detail
