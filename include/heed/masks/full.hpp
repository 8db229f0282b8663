// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/masks/policy.hpp>

namespace heed::masks {

/// No mask: every query sees every key.
struct Full {
  static constexpr bool depends_on_head = false;

  bool allows(Position) const { return true; }
  Coverage coverage(Tile) const { return Coverage::full; }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index i = 0; i < tile.keys(); ++i) words[i] = ~std::uint64_t{0};
  }
};

}  // namespace heed::masks
