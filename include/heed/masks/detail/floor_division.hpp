// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// ⌊a / b⌋, also for negative positions, which C++ would round toward zero. Throws InvalidArgument
/// for b < 1, possible in an unchecked mask.
inline Index floor_divide(Index a, Index b) {
  if (b < 1) throw_invalid_argument("a mask divides positions by ", b, "; expected at least 1");
  const Index quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}

/// a mod b in [0, b).
inline Index floor_modulo(Index a, Index b) { return a - floor_divide(a, b) * b; }

/// Whether some multiple of `step` lies in [first, last].
inline bool has_multiple(Index first, Index last, Index step) {
  return floor_divide(last, step) * step >= first;
}

}  // namespace heed::detail
