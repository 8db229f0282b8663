// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// A window side without a bound.
inline constexpr Index unbounded = -1;

/// Local attention: a query sees keys from `left` before its own position to `right` after it,
/// both ends included, so that 0 means itself only. `unbounded` opens a side; other negative
/// numbers are refused. Beltagy et al. 2020 (Longformer); windows count as in FlashAttention.
struct SlidingWindow {
  static constexpr bool depends_on_head = false;
  Index left = unbounded;
  Index right = 0;

  bool allows(Position at) const { return keys(at).has(at.key); }
  // A huge side, another way to say unbounded, cannot overflow.
  KeyRange keys(Position at) const {
    constexpr Index all = std::numeric_limits<Index>::max();
    const bool from_the_start = left == unbounded || left >= at.query;
    const bool to_the_end = right == unbounded || (at.query >= 0 && right >= all - at.query);
    return {from_the_start ? 0 : at.query - left, to_the_end ? all : at.query + right + 1};
  }
  void check(MaskShape) const {
    if (left < unbounded || right < unbounded) {
      throw_shape_error("SlidingWindow: left ", left, ", right ", right,
                        "; expected 0 or more, or unbounded (-1)");
    }
  }
};

/// The last `count` keys up to and with the query's own position.
inline SlidingWindow last_n(Index count) {
  if (count < 1) throw_shape_error("last_n: ", count, " keys; expected at least 1, itself");
  return {count - 1, 0};
}

}  // namespace heed::masks
