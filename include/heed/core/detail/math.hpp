// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <heed/core/index.hpp>

// A part of -ffast-math would fold what these functions rely on.
#if defined(__clang__)
#if defined(__x86_64__)
#pragma float_control(precise, on, push)
#endif
#pragma clang fp reassociate(off)
#elif defined(HEED_ALLOW_FAST_MATH)
#pragma GCC push_options
#pragma GCC optimize("no-fast-math")
#endif

namespace heed::detail {

/// a · b, rounded before any sum. Compilers may fuse `a * b + c` into one rounding, depending on
/// flags and target processor; formulas that use this function have the same bits everywhere.
template <class T>
inline T product(T a, T b) {
  if constexpr (sizeof(T) > 8) return a * b;  // long double: no machine fuses it
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  return __builtin_assoc_barrier(a * b);
#elif defined(__GNUC__) && defined(__x86_64__)
  T result = a * b;
  __asm__("" : "+x"(result));
  return result;
#elif defined(__GNUC__) && defined(__aarch64__)
  T result = a * b;
  __asm__("" : "+w"(result));
  return result;
#else
  volatile T result = a * b;
  return result;
#endif
}

/// c[0] + c[1] x + … + c[n - 1] xⁿ⁻¹ by Horner's rule, each step rounded.
template <class T, unsigned n>
inline T polynomial(const T (&coefficients)[n], T x) {
  T sum = coefficients[n - 1];
  for (unsigned i = n - 1; i-- > 0;) sum = product(sum, x) + coefficients[i];
  return sum;
}

/// base to the power of a whole number ≥ 0, by squaring: the same bits with every math library.
inline double whole_power(double base, Index exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

/// 2ᵏ for normal results, −1022 ≤ k ≤ 1023.
inline double power_of_two(std::int64_t k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

/// eˣ for every double: at most 0.8 ULP off, gradual underflow included; exp(0) = 1, exp(−inf) = 0,
/// NaN stays. Bits depend on x alone: not on compiler, flags, libm or the place in an array. x = k
/// ln 2 + r with |r| ≤ ln 2 / 2, eʳ by its Taylor polynomial of degree 13 (truncation below 4e-18),
/// with the leading 1 + r exact. ln 2 in two parts after Cody and Waite 1980.
inline double exp(double x) {
  if (!(x > -745.2)) return x != x ? x : 0.0;
  if (x > 709.8) return std::numeric_limits<double>::infinity();
  // The high part has 21 trailing zero bits: its products with k are exact.
  constexpr double ln_2_high = 0x1.62e42feep-1;
  constexpr double ln_2_low = 0x1.a39ef35793c76p-33;
  constexpr double log2_of_e = 0x1.71547652b82fep+0;
  constexpr double round_to_integer = 0x1.8p52;
  const double k = (product(x, log2_of_e) + round_to_integer) - round_to_integer;
  const double high = x - product(k, ln_2_high);
  const double low = product(k, ln_2_low);
  const double r = high - low;
  // (eʳ − 1 − r) / r²
  constexpr double tail[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                             1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                             1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  const double rest = product(product(r, r), polynomial(tail, r)) + ((high - r) - low);
  const double one_plus_r = 1.0 + r;
  const double power = one_plus_r + (((1.0 - one_plus_r) + r) + rest);
  // In two exact steps and one that rounds: 2ᵏ alone may lie outside the normal range.
  const auto exponent = static_cast<std::int64_t>(k);
  const std::int64_t half = exponent / 2;
  return power * power_of_two(half) * power_of_two(exponent - half);
}

/// ln x for every double: at most 1 ULP off, log(1) = 0, log(0) = −inf, NaN below 0. Bits depend on
/// x alone, as those of detail::exp.
/// x = 2ᵏ m with √½ < m ≤ √2, ln m = 2 atanh s by its series, s = (m − 1) / (m + 1); the
/// arrangement that keeps m − 1 exact follows FreeBSD's e_log.c.
inline double log(double x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!(x > 0)) return x == 0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
  if (x == infinity) return x;
  const bool subnormal = x < std::numeric_limits<double>::min();
  auto bits = std::bit_cast<std::uint64_t>(subnormal ? x * 0x1p54 : x);
  // Counting the exponent from √½ instead of 1 puts the mantissa into (√½, √2].
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
  bits += one - root_half;
  const double k =
      static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023) - (subnormal ? 54.0 : 0.0);
  const double f = std::bit_cast<double>((bits & 0x000fffffffffffff) + root_half) - 1.0;
  const double s = f / (2.0 + f);
  const double z = product(s, s);
  // 2 atanh(s) / s − 2 over z
  constexpr double series[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                               2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const double rest = product(z, polynomial(series, z));
  const double half_square = product(product(0.5, f), f);
  constexpr double ln_2_high = 0x1.62e42feep-1;
  constexpr double ln_2_low = 0x1.a39ef35793c76p-33;
  const double small = product(s, half_square + rest) + product(k, ln_2_low);
  return product(k, ln_2_high) - ((half_square - small) - f);
}

}  // namespace heed::detail

#if defined(__clang__) && defined(__x86_64__)
#pragma float_control(pop)
#elif !defined(__clang__) && defined(HEED_ALLOW_FAST_MATH)
#pragma GCC pop_options
#endif
