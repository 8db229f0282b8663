// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace heed {

/// IEEE binary16 to float, exactly. Selects by masks, since compilers put no branches in vectors.
inline float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, size = half & 0x7fffu, bias = 112u << 23;
  const std::uint32_t endless = 0 - static_cast<std::uint32_t>(size >= 0x7c00);
  const std::uint32_t small = 0 - static_cast<std::uint32_t>(size < 0x400);
  const std::uint32_t normal = (size << 13) + bias + (endless & bias);
  // Zero or subnormal, size · 2^-24: the last bits of a number from 2^-14 on.
  const float shifted = __builtin_bit_cast(float, size << 13 | 113u << 23);
  const auto subnormal = __builtin_bit_cast(std::uint32_t, shifted - 0x1p-14f);
  return __builtin_bit_cast(float, sign | (small & subnormal) | (~small & normal));
}

/// float to IEEE binary16, to nearest, ties to even; infinity from 65520 on, NaN stays NaN.
inline std::uint16_t half_of_float(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  std::uint32_t half = 0;
  if (size > 0x7f800000) {
    half = 0x7e00 | (size >> 13 & 1023);
  } else if (size >= 0x477ff000) {  // rounds to 65536 or more
    half = 0x7c00;
  } else if (size < 0x38800000) {  // subnormal: adding 0.5 leaves units of 2^-24 in the last bits
    const float shifted = __builtin_bit_cast(float, size) + 0.5f;
    half = __builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000;
  } else {
    half = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// bfloat16, the upper half of a float, to float, exactly.
inline float float_of_bfloat16(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

/// float to bfloat16, to nearest, ties to even; NaN stays NaN.
inline std::uint16_t bfloat16_of_float(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

namespace detail {

/// The float beside a double with the odd last bit, or the double itself: to round that to fewer
/// bits is to round the double once.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  auto bits = __builtin_bit_cast(std::uint32_t, nearest);
  if (back == value || value != value || (bits & 1) != 0) return nearest;
  const bool beyond = value < 0 ? back < value : back > value;
  bits += beyond ? ~std::uint32_t{0} : 1;
  return __builtin_bit_cast(float, bits);
}

}  // namespace detail

/// A bfloat16: the upper half of a float, with its range, 8 bits of precision and half the memory.
/// A storage format: computation is in float.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;
  /// A number, rounded once to nearest, ties to even; what no double holds as the double nearest
  /// to it. NaN stays NaN.
  explicit bfloat16(float value) : bits(bfloat16_of_float(value)) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit bfloat16(Number value) : bfloat16(detail::round_to_odd(static_cast<double>(value))) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> bfloat16& operator=(Number value) {
    return *this = bfloat16(value);
  }
  /// Exact.
  operator float() const { return float_of_bfloat16(bits); }  // NOLINT: as built-in types
};

/// An IEEE binary16: half the memory of a float, 11 bits of precision, magnitudes up to 65504. A
/// storage format of weights.
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() = default;
  /// A number, rounded once to nearest, ties to even; what no double holds as the double nearest
  /// to it. Infinity from 65520 on, NaN stays NaN.
  explicit float16(float value) : bits(half_of_float(value)) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit float16(Number value) : float16(detail::round_to_odd(static_cast<double>(value))) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> float16& operator=(Number value) {
    return *this = float16(value);
  }
  /// Exact.
  operator float() const { return float_of_half(bits); }  // NOLINT: as built-in types
};

/// The type in which numbers stored as T are computed: float for bfloat16, otherwise T itself.
template <class T>
using ComputedIn = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

namespace detail {

/// What std::numeric_limits tells of a type of 16 bits; the rest is as of float.
template <class Half, int Digits, int MaxExponent>
struct HalfLimits : std::numeric_limits<float> {
  static constexpr int digits = Digits;
  static constexpr int digits10 = (Digits - 1) * 301 / 1000;
  static constexpr int max_digits10 = 2 + Digits * 301 / 1000;
  static constexpr int max_exponent = MaxExponent;
  static constexpr int min_exponent = 3 - MaxExponent;
  static constexpr int max_exponent10 = MaxExponent * 301 / 1000;
  static constexpr int min_exponent10 = -((MaxExponent - 2) * 301 / 1000);

  static constexpr Half min() noexcept { return of(one_in_exponent); }
  static constexpr Half max() noexcept { return of(infinite - 1); }
  static constexpr Half lowest() noexcept { return of(0x8000 | (infinite - 1)); }
  static constexpr Half epsilon() noexcept { return of((MaxExponent - Digits) * one_in_exponent); }
  static constexpr Half round_error() noexcept { return of(half); }
  static constexpr Half infinity() noexcept { return of(infinite); }
  static constexpr Half quiet_NaN() noexcept { return of(infinite | one_in_exponent >> 1); }
  static constexpr Half signaling_NaN() noexcept { return of(infinite | one_in_exponent >> 2); }
  static constexpr Half denorm_min() noexcept { return of(1); }

 private:
  static constexpr int one_in_exponent = 1 << (Digits - 1);
  static constexpr int infinite = (2 * MaxExponent - 1) * one_in_exponent;
  static constexpr int half = (MaxExponent - 2) * one_in_exponent;
  static constexpr Half of(int bits) {
    Half number;
    number.bits = static_cast<std::uint16_t>(bits);
    return number;
  }
};

}  // namespace detail

}  // namespace heed

template <>
struct std::numeric_limits<heed::bfloat16> : heed::detail::HalfLimits<heed::bfloat16, 8, 128> {};
template <>
struct std::numeric_limits<heed::float16> : heed::detail::HalfLimits<heed::float16, 11, 16> {};
