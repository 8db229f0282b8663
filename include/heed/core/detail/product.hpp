// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>

namespace heed::detail {

/// a · b, rounded here. Compilers may fuse `a * b + c` into one rounding, depending on their flags
/// and the processor they compile for; a formula whose products are written this way gives the same
/// bits everywhere.
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

}  // namespace heed::detail
