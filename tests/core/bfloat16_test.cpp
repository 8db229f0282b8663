// SPDX-License-Identifier: MIT
#include <heed/core/bfloat16.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace heed {
namespace {

TEST(Half, SomeValues) {
  EXPECT_EQ(float_of_half(0x3c00), 1.f);
  EXPECT_EQ(float_of_half(0xc000), -2.f);
  EXPECT_EQ(float_of_half(0x7bff), 65504.f);
  EXPECT_EQ(float_of_half(0x0001), 0x1p-24f);
  EXPECT_EQ(float_of_half(0x8400), -0x1p-14f);
  EXPECT_TRUE(std::signbit(float_of_half(0x8000)));
  EXPECT_EQ(float_of_half(0x7c00), INFINITY);
  EXPECT_TRUE(std::isnan(float_of_half(0x7e01)));
  EXPECT_EQ(half_of_float(65519.9f), 0x7bff);
  EXPECT_EQ(half_of_float(65520.f), 0x7c00);
  EXPECT_EQ(half_of_float(-INFINITY), 0xfc00);
}

TEST(Half, EveryHalfComesBackAndMeansItsFormula) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = float_of_half(half);
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(float_of_half(half_of_float(value))));
      continue;
    }
    if (exponent < 31) {
      const double size =
          exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      EXPECT_EQ(static_cast<double>(value), half >= 0x8000 ? -size : size) << bits;
    }
    EXPECT_EQ(half_of_float(value), half);
  }
}

/// Between two neighbors, what lies nearer the lower goes there, the middle to the even one.
template <class ToFloat, class OfFloat>
void expect_nearest_even(std::uint16_t last, const ToFloat& wide, const OfFloat& narrow) {
  for (std::uint16_t low = 0; low < last; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const float middle =
        static_cast<float>((static_cast<double>(wide(low)) + static_cast<double>(wide(high))) / 2);
    const std::uint16_t even = low % 2 == 0 ? low : high;
    ASSERT_EQ(narrow(middle), even) << low;
    ASSERT_EQ(narrow(std::nextafter(middle, 0.f)), low) << low;
    ASSERT_EQ(narrow(std::nextafter(middle, INFINITY)), high) << low;
    ASSERT_EQ(narrow(-middle), even | 0x8000) << low;
  }
}

TEST(Half, RoundsToNearestEven) { expect_nearest_even(0x7bff, float_of_half, half_of_float); }

TEST(Bfloat16, RoundsToNearestEven) {
  expect_nearest_even(0x7f7f, float_of_bfloat16, bfloat16_of_float);
  EXPECT_EQ(bfloat16_of_float(INFINITY), 0x7f80);
  EXPECT_EQ(bfloat16_of_float(3.4e38f), 0x7f80) << "the nearest is beyond the largest";
}

TEST(Bfloat16, EveryOneComesBackAndNanStaysNan) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float_of_bfloat16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_of_bfloat16(bfloat16_of_float(value))));
    } else {
      EXPECT_EQ(bfloat16_of_float(value), bits);
    }
  }
  // A NaN whose payload lies in the dropped bits alone.
  EXPECT_TRUE(std::isnan(float_of_bfloat16(bfloat16_of_float(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Bfloat16, RoundsToTheNearestEven) {
  EXPECT_EQ(float(bfloat16(1.f)), 1.f);
  EXPECT_EQ(float(float16(1.f + 0x1p-10f)), 1.f + 0x1p-10f);
  EXPECT_EQ(float(float16(1.f + 0x1p-11f)), 1.f);
  EXPECT_EQ(float(bfloat16(1.f + 0x1p-8f)), 1.f);
  EXPECT_EQ(float(bfloat16(1.f + 0x1.8p-7f)), 1.f + 0x1p-6f);
  EXPECT_EQ(float(bfloat16(-std::numeric_limits<float>::infinity())),
            -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(sizeof(bfloat16), 2u);
}

/// A number is assigned as the constructor rounds a float, and a double is not rounded twice.
template <class Half>
void expect_assigned(double tie) {
  static_assert(std::is_trivially_copyable_v<Half> && sizeof(Half) == 2);
  static_assert(!std::is_convertible_v<float, Half> && !std::is_convertible_v<int, Half>);
  static_assert(std::is_assignable_v<Half&, double> && !std::is_assignable_v<Half&, const char*>);
  Half x;
  for (const float value : {0.f, -1.5f, 3.14159265f, 1e-41f, 7e4f, INFINITY}) {
    EXPECT_EQ((x = value).bits, Half(value).bits);
    EXPECT_EQ((x = static_cast<double>(value)).bits, Half(value).bits);
  }
  EXPECT_EQ(float(x = -3), -3.f);
  EXPECT_EQ(float(x = 257u), float(Half(257.f)));
  EXPECT_TRUE(std::isnan(float(x = std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(float(x = 1 + tie), 1.f);
  EXPECT_EQ(float(x = 1 + tie + 0x1p-40), float(1 + 2 * tie)) << "a float would be the tie itself";
  EXPECT_EQ(float(x = -1 - tie - 0x1p-40), -float(1 + 2 * tie));
  EXPECT_EQ(float(static_cast<Half>(1 + tie + 0x1p-40)), float(1 + 2 * tie)) << "as assigned";
  EXPECT_EQ(float(Half(257u)), float(Half(257.f)));
}

TEST(Half, IsAssignedNumbers) {
  expect_assigned<bfloat16>(0x1p-8);
  expect_assigned<float16>(0x1p-11);
}

/// The limits of a type beside those that its numbers have.
template <class Half>
void expect_limits(float largest, float unit, float least, float least_subnormal) {
  using Limits = std::numeric_limits<Half>;
  static_assert(Limits::is_specialized && Limits::is_signed && !Limits::is_integer);
  static_assert(std::numeric_limits<const Half>::digits == Limits::digits);
  EXPECT_EQ(float(Limits::max()), largest);
  EXPECT_EQ(float(Limits::lowest()), -largest);
  EXPECT_EQ(float(Limits::epsilon()), unit);
  EXPECT_EQ(float(Half(1 + unit)), 1 + unit);
  EXPECT_EQ(float(Half(1 + unit / 4)), 1.f);
  EXPECT_EQ(Limits::digits, 1 - std::ilogb(unit));
  EXPECT_EQ(float(Limits::min()), least);
  EXPECT_EQ(Limits::min_exponent, std::ilogb(least) + 1);
  EXPECT_EQ(Limits::max_exponent, std::ilogb(largest) + 1);
  EXPECT_EQ(Limits::max_exponent10, static_cast<int>(std::log10(largest)));
  EXPECT_EQ(Limits::min_exponent10, static_cast<int>(std::log10(least)));
  EXPECT_EQ(Limits::digits10, static_cast<int>(std::log10(0.5f / (unit / 2))));
  EXPECT_EQ(Limits::max_digits10, static_cast<int>(std::ceil(1 + std::log10(2 / unit))));
  EXPECT_EQ(float(Limits::denorm_min()), least_subnormal);
  EXPECT_EQ(float(Limits::round_error()), 0.5f);
  EXPECT_EQ(float(Limits::infinity()), INFINITY);
  EXPECT_TRUE(std::isnan(float(Limits::quiet_NaN())));
  EXPECT_TRUE(std::isnan(float(Limits::signaling_NaN())));
}

TEST(Half, HasLimits) {
  expect_limits<bfloat16>(0x1.fep127f, 0x1p-7f, 0x1p-126f, 0x1p-133f);
  expect_limits<float16>(65504.f, 0x1p-10f, 0x1p-14f, 0x1p-24f);
}

}  // namespace
}  // namespace heed
