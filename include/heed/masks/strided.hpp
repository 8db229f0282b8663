// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/error.hpp>
#include <heed/masks/detail/floor_division.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Every `step`-th key, counted from the query's own position, before and after it; combine with
/// Causal for the strided pattern of Child et al. 2019 (Sparse Transformers).
struct Strided {
  static constexpr bool depends_on_head = false;
  Index step = 1;

  bool allows(Position at) const { return detail::floor_modulo(at.query - at.key, step) == 0; }
  Coverage coverage(Tile tile) const {
    if (!detail::has_multiple(tile.first_query - tile.last_key, tile.last_query - tile.first_key,
                              step)) {
      return Coverage::none;
    }
    const bool one_score = tile.queries() == 1 && tile.keys() == 1;
    return step == 1 || one_score ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    const Index stride = step < 64 ? step : 64;  // a huge step must not overflow a lane
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      std::uint64_t word = 0;
      Index lane = detail::floor_modulo(key - tile.first_query, step);
      for (; lane < 64; lane += stride) word |= std::uint64_t{1} << lane;
      *words++ = word;
    }
  }
  void check(MaskShape) const {
    if (step < 1) throw_shape_error("Strided: step ", step, "; expected at least 1");
  }
};

}  // namespace heed::masks
