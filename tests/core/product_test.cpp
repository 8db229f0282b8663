// SPDX-License-Identifier: MIT
#include <heed/core/detail/math.hpp>

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace heed::detail
