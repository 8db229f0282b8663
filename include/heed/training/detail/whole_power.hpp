// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>

namespace heed::detail {

/// base to the power of a whole number, by squaring: the same bits with every math library.
inline double whole_power(double base, Index exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

}  // namespace heed::detail
