// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>

namespace heed::detail {

/// ⌊a / b⌋ for b > 0, also for negative positions, which C++ would round towards zero.
inline Index floor_divide(Index a, Index b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// a mod b in [0, b) for b > 0.
inline Index floor_modulo(Index a, Index b) { return a - floor_divide(a, b) * b; }

/// Whether some multiple of `step` lies in [first, last].
inline bool has_multiple(Index first, Index last, Index step) {
  return floor_divide(last, step) * step >= first;
}

}  // namespace heed::detail
