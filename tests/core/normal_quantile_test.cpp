// SPDX-License-Identifier: MIT
#include <heed/core/random.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed::detail {
namespace {

TEST(NormalQuantile, InvertsTheNormalDistribution) {
  double before = -40;
  for (double p = 1e-300; p < 0.5; p *= 1.01) {
    const double z = normal_quantile(p);
    ASSERT_GT(z, before) << p;
    before = z;
    // Φ(z) by erfc, in long double. An error of z by dz moves Φ by φ(z) dz.
    const long double share = 0.5L * std::erfc(-static_cast<long double>(z) / std::sqrt(2.0L));
    const long double density =
        std::exp(-0.5L * z * z) / std::sqrt(2 * 3.14159265358979323846264338327950288L);
    ASSERT_LE(std::fabs((share - p) / density), 2e-15L * std::fabs(static_cast<long double>(z)))
        << p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0.0);
}

TEST(NormalQuantile, KnownValues) {
  EXPECT_DOUBLE_EQ(normal_quantile(0.025), -1.9599639845400542);
  EXPECT_DOUBLE_EQ(normal_quantile(0.25), -0.6744897501960817);
  EXPECT_NEAR(normal_quantile(1e-20), -9.262340089798408, 2e-14);
}

}  // namespace
}  // namespace heed::detail
