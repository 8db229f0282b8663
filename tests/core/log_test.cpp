// SPDX-License-Identifier: MIT
#include <heed/core/detail/math.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <core/bits.hpp>
#include <heed/core/random.hpp>

namespace heed::detail {
namespace {

using heed::test::BitHash;
using heed::test::ulps;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Log, ToOneUnitFromSubnormalsToTheLargest) {
  Random random(1);
  double worst = 0, worst_float = 0;
  for (int i = 0; i < 300000; ++i) {
    const double mantissa = 1 + random.uniform();
    const double wide = std::ldexp(mantissa, static_cast<int>(random.integer(2097)) - 1074);
    const double near_one = 1 + std::ldexp(mantissa - 1.5, -static_cast<int>(i % 50));
    for (const double x : {wide, near_one}) {
      if (x == 0) continue;
      worst = std::fmax(worst, ulps(log(x), std::log(static_cast<long double>(x))));
      const auto f = static_cast<float>(x);
      if (!(f > 0) || std::isinf(f)) continue;
      worst_float = std::fmax(worst_float, ulps(log(f), std::log(static_cast<long double>(f))));
    }
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_LE(worst_float, 0.501);
}

TEST(Log, SpecialValues) {
  EXPECT_EQ(log(1.0), 0.0);
  EXPECT_EQ(log(0.0), -infinity);
  EXPECT_EQ(log(-0.0), -infinity);
  EXPECT_EQ(log(infinity), infinity);
  EXPECT_TRUE(std::isnan(log(-1.0)));
  EXPECT_TRUE(std::isnan(log(-infinity)));
  EXPECT_TRUE(std::isnan(log(std::nan(""))));
  EXPECT_TRUE(std::isnan(log(-1.0f)));
  EXPECT_EQ(log(0.0f), -std::numeric_limits<float>::infinity());
}

TEST(Log, TheSameBitsOnEveryCompilerAndFlag) {
  Random random(2);
  BitHash hash;
  for (int i = 0; i < 100000; ++i) {
    const double mantissa = 1 + random.uniform();
    hash.add(log(std::ldexp(mantissa, static_cast<int>(random.integer(2097)) - 1074)));
    hash.add(log(random.uniform<float>()));
  }
  EXPECT_EQ(hash.value(), 0xa8df5b1509c16efcu);
}

}  // namespace
}  // namespace heed::detail
