// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Look-ahead mask of a decoder: a query sees its own position and those before it.
struct Causal {
  static constexpr bool depends_on_head = false;

  bool allows(Position at) const { return at.key <= at.query; }
  Coverage coverage(Tile tile) const {
    if (tile.first_key > tile.last_query) return Coverage::none;
    return tile.last_key <= tile.first_query ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = lanes_between(key - tile.first_query, 63);
    }
  }
};

}  // namespace heed::masks
