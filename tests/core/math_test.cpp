// SPDX-License-Identifier: MIT
#include <heed/core/detail/math.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <core/bits.hpp>
#include <cstdlib>
#include <limits>

#include <heed/core/random.hpp>

namespace heed::detail {
namespace {

// (1 + 2⁻³⁰)² − 1 − 2⁻²⁹ is 2⁻⁶⁰ in one rounding and 0 when the product is rounded first.
constexpr double near_one = 1 + 0x1p-30;
constexpr double minus_square = -(1 + 0x1p-29);
constexpr float near_one_float = 1 + 0x1p-14f;
constexpr float minus_square_float = -(1 + 0x1p-13f);

#if defined(__x86_64__)
__attribute__((target("fma"), noinline)) double with_fma(double a, double c) {
  return product(a, a) + c;
}
__attribute__((target("fma"), noinline)) float with_fma(float a, float c) {
  return product(a, a) + c;
}

TEST(Product, IsNotFusedWhereTheProcessorCould) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "no FMA instructions here";
  EXPECT_EQ(with_fma(near_one, minus_square), 0.0);
  EXPECT_EQ(with_fma(near_one_float, minus_square_float), 0.0f);
}
#endif

TEST(Product, RoundsBeforeTheSum) {
  volatile double a = near_one, c = minus_square;
  EXPECT_EQ(product<double>(a, a) + c, 0.0);
  EXPECT_EQ(__builtin_fma(a, a, c), 0x1p-60);
  volatile float b = near_one_float, d = minus_square_float;
  EXPECT_EQ(product<float>(b, b) + d, 0.0f);
}

TEST(Product, PolynomialByHorner) {
  constexpr double coefficients[] = {5, -2, 3};
  EXPECT_EQ(polynomial(coefficients, 2.0), 5 - 4 + 12);
  constexpr double constant[] = {7};
  EXPECT_EQ(polynomial(constant, 100.0), 7);
}

TEST(WholePower, IsRepeatedMultiplication) {
  EXPECT_EQ(whole_power(0.5, 0), 1);
  EXPECT_EQ(whole_power(-3, 5), -243);
  EXPECT_EQ(whole_power(2, 1000), std::ldexp(1.0, 1000));
  for (const Index exponent : {1, 2, 7, 1000, 123456}) {
    EXPECT_NEAR(whole_power(0.999, exponent) / std::pow(0.999, double(exponent)), 1,
                1.2e-16 * static_cast<double>(exponent));
  }
}

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
    const auto got = static_cast<float>(exp(x));
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
    hash.add(static_cast<float>(exp(-128 * random.uniform<float>())));
  }
  EXPECT_EQ(hash.value(), 0xf52211150a291f1au);
}

TEST(Log, ToOneUnitFromSubnormalsToTheLargest) {
  Random random(1);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const double mantissa = 1 + random.uniform();
    const double wide = std::ldexp(mantissa, static_cast<int>(random.integer(2097)) - 1074);
    const double close_to_one = 1 + std::ldexp(mantissa - 1.5, -static_cast<int>(i % 50));
    for (const double x : {wide, close_to_one}) {
      if (x == 0) continue;
      worst = std::fmax(worst, ulps(log(x), std::log(static_cast<long double>(x))));
    }
  }
  EXPECT_LE(worst, 1.0);
}

TEST(Log, SpecialValues) {
  EXPECT_EQ(log(1.0), 0.0);
  EXPECT_EQ(log(0.0), -infinity);
  EXPECT_EQ(log(-0.0), -infinity);
  EXPECT_EQ(log(infinity), infinity);
  EXPECT_TRUE(std::isnan(log(-1.0)));
  EXPECT_TRUE(std::isnan(log(-infinity)));
  EXPECT_TRUE(std::isnan(log(std::nan(""))));
}

TEST(Log, TheSameBitsOnEveryCompilerAndFlag) {
  Random random(2);
  BitHash hash;
  for (int i = 0; i < 100000; ++i) {
    const double mantissa = 1 + random.uniform();
    hash.add(log(std::ldexp(mantissa, static_cast<int>(random.integer(2097)) - 1074)));
    hash.add(static_cast<float>(log(random.uniform<float>())));
  }
  EXPECT_EQ(hash.value(), 0xa8df5b1509c16efcu);
}

}  // namespace
}  // namespace heed::detail
