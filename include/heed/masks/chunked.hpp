// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/error.hpp>
#include <heed/masks/detail/floor_division.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Blocks of `size` consecutive positions that see only themselves (block-local attention).
struct Chunked {
  static constexpr bool depends_on_head = false;
  Index size = 1;

  bool allows(Position at) const { return chunk(at.query) == chunk(at.key); }
  Coverage coverage(Tile tile) const {
    const Index first = chunk(tile.first_query), last = chunk(tile.last_query);
    if (chunk(tile.last_key) < first || chunk(tile.first_key) > last) return Coverage::none;
    return first == last && chunk(tile.first_key) == first && chunk(tile.last_key) == first
               ? Coverage::full
               : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      const Index first = chunk(key) * size - tile.first_query;
      *words++ = lanes_between(first, size - 1 < 63 - first ? first + size - 1 : 63);
    }
  }
  void check(MaskShape) const {
    if (size < 1) throw_shape_error("Chunked: size ", size, "; expected at least 1");
  }

 private:
  Index chunk(Index position) const { return detail::floor_divide(position, size); }
};

}  // namespace heed::masks
