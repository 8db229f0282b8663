// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/error.hpp>
#include <heed/masks/detail/floor_division.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Every `step`-th key of the sequence (0, step, 2·step, …), for every query: with a window the
/// sparse mask "neighbors and every stride-th token".
struct EveryNthKey {
  static constexpr bool depends_on_head = false;
  Index step = 1;

  bool allows(Position at) const { return detail::floor_modulo(at.key, step) == 0; }
  Coverage coverage(Tile tile) const {
    if (!detail::has_multiple(tile.first_key, tile.last_key, step)) return Coverage::none;
    return step == 1 || tile.keys() == 1 ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = detail::floor_modulo(key, step) == 0 ? ~std::uint64_t{0} : 0;
    }
  }
  void check(MaskShape) const {
    if (step < 1) throw_shape_error("EveryNthKey: step ", step, "; expected at least 1");
  }
};

}  // namespace heed::masks
