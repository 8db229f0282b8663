// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <heed/core/detail/product.hpp>

// The library's own exponential for work outside the instruction-set kernels. A vector version may
// replace it where it gives the same bits; until then `exp` of rows is this function, in a loop.

namespace heed::detail {

/// 2ᵏ for normal results, −1022 ≤ k ≤ 1023.
inline double power_of_two(std::int64_t k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

/// eˣ for every double: at most 0.8 ULP off, gradual underflow included; exp(0) = 1, exp(−inf) = 0,
/// NaN stays. Bits depend on x alone: not on compiler, flags, libm or the place in an array.
/// x = k ln 2 + r with |r| ≤ ln 2 / 2, eʳ by its Taylor polynomial of degree 13 (truncation below
/// 4e-18), the leading 1 + r kept exact. ln 2 in two parts after Cody and Waite 1980.
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

/// eˣ for every float: the double result rounded once, at most 0.501 ULP off.
inline float exp(float x) { return static_cast<float>(exp(static_cast<double>(x))); }

}  // namespace heed::detail
