// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <heed/core/detail/product.hpp>

namespace heed::detail {

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

/// ln x for every float: the double result rounded once.
inline float log(float x) { return static_cast<float>(log(static_cast<double>(x))); }

}  // namespace heed::detail
