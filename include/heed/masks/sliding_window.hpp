// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

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

  // All by differences of positions: a huge side, another way to say unbounded, cannot overflow.
  bool allows(Position at) const {
    return (left == unbounded || at.query - at.key <= left) &&
           (right == unbounded || at.key - at.query <= right);
  }
  Coverage coverage(Tile tile) const {
    const bool left_of_all = left != unbounded && tile.first_query - tile.last_key > left;
    const bool right_of_all = right != unbounded && tile.first_key - tile.last_query > right;
    if (left_of_all || right_of_all) return Coverage::none;
    const bool within_left = left == unbounded || tile.last_query - tile.first_key <= left;
    const bool within_right = right == unbounded || tile.last_key - tile.first_query <= right;
    return within_left && within_right ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      const Index lane = key - tile.first_query;  // of the query at this key's position
      const bool to_the_end = left == unbounded || left >= 63 - lane;
      const bool from_the_start = right == unbounded || right >= lane;
      *words++ = lanes_between(from_the_start ? 0 : lane - right, to_the_end ? 63 : lane + left);
    }
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
