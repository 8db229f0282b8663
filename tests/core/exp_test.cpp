// SPDX-License-Identifier: MIT
#include <heed/core/detail/math.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include <core/bits.hpp>
#include <heed/core/random.hpp>

namespace heed::detail {
namespace {

using heed::test::BitHash;
using heed::test::ulps;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Every float in [-104, 0] when HEED_EXHAUSTIVE is set (minutes), else about a million of them.
TEST(Exp, FloatsOfSoftmaxAreCorrectToHalfAUnit) {
  const bool all = std::getenv("HEED_EXHAUSTIVE") != nullptr;
  double worst = 0;
  float before = 1;
  const auto last = std::bit_cast<std::uint32_t>(-104.0f);
  for (std::uint32_t bits = 0x80000000; bits <= last; bits += all ? 1 : 997) {
    const auto x = std::bit_cast<float>(bits);
    const float got = exp(x);
    worst = std::fmax(worst, ulps(got, std::exp(static_cast<long double>(x))));
    ASSERT_LE(got, before) << "not monotone at " << x;
    before = got;
  }
  EXPECT_LE(worst, 0.501);
}

TEST(Exp, DoublesToLessThanOneUnitGradualUnderflowIncluded) {
  Random random(1);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const double wide = -746 + 1456 * random.uniform();
    const double near_zero = std::ldexp(random.uniform() - 0.5, static_cast<int>(i % 60) - 58);
    for (const double x : {wide, near_zero}) {
      const long double exact = std::exp(static_cast<long double>(x));
      if (exact > static_cast<long double>(std::numeric_limits<double>::max())) continue;
      worst = std::fmax(worst, ulps(exp(x), exact));
    }
  }
  EXPECT_LE(worst, 0.8);
}

TEST(Exp, MonotoneWhereTheReductionChanges) {
  for (int k = -1074; k <= 1023; ++k) {
    double x = (k + 0.5) * 0.69314718055994530942;
    for (int step = 0; step < 8; ++step) x = std::nextafter(x, -infinity);
    double before = 0;
    for (int step = 0; step < 16; ++step, x = std::nextafter(x, infinity)) {
      ASSERT_GE(exp(x), before) << x;
      before = exp(x);
    }
  }
}

TEST(Exp, NothingIsLeftFarBelowTheRange) {
  for (double x = -745.14; x > -1e5; x *= 1.01) ASSERT_EQ(exp(x), 0.0) << x;
  for (double x = 709.79; x < 1e5; x *= 1.01) ASSERT_EQ(exp(x), infinity) << x;
}

TEST(Exp, SpecialValues) {
  EXPECT_EQ(exp(0.0), 1.0);
  EXPECT_EQ(exp(-0.0), 1.0);
  EXPECT_EQ(exp(-infinity), 0.0);
  EXPECT_FALSE(std::signbit(exp(-infinity)));
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_EQ(exp(-1e308), 0.0);
  EXPECT_EQ(exp(1e308), infinity);
  EXPECT_TRUE(std::isnan(exp(std::nan(""))));
  EXPECT_TRUE(std::isnan(exp(-std::nanf("7"))));
  EXPECT_EQ(exp(-0.0f), 1.0f);
  EXPECT_EQ(exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(exp(89.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(exp(-103.97f), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(exp(-103.98f), 0.0f);
  EXPECT_EQ(exp(-745.13), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(exp(-745.14), 0.0);
  EXPECT_TRUE(std::isfinite(exp(709.78)));
  EXPECT_EQ(exp(709.79), infinity);
}

TEST(Exp, TheSameBitsOnEveryCompilerAndFlag) {
  Random random(2);
  BitHash hash;
  for (int i = 0; i < 100000; ++i) {
    // Powers of two: the arguments themselves are the same with and without fused products.
    hash.add(exp(-768 + 1024 * random.uniform()));
    hash.add(exp(-128 * random.uniform<float>()));
  }
  EXPECT_EQ(hash.value(), 0xf52211150a291f1au);
}

}  // namespace
}  // namespace heed::detail
