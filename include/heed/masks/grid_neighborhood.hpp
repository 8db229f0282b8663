// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Neighborhood attention on an image: position = row · columns + column, and a cell sees the cells
/// at most `radius` rows and columns away. Positions outside the grid see nothing. Hassani et al.
/// 2023 (NAT), without its shifted windows at the border; `& ValidKeys` for cells that are empty.
struct GridNeighborhood {
  static constexpr bool depends_on_head = false;
  Index rows = 1;
  Index columns = 1;
  Index radius = 1;

  bool allows(Position at) const {
    if (!inside(at.query) || !inside(at.key)) return false;
    return near(at.query / columns, at.key / columns) && near(at.query % columns, at.key % columns);
  }
  Coverage coverage(Tile tile) const {
    const Index first_query = tile.first_query < 0 ? 0 : tile.first_query;
    const Index last_query = clip(tile.last_query);
    const Index last_key = clip(tile.last_key);
    if (first_query > last_query || tile.first_key > last_key) return Coverage::none;
    const Box queries = box(first_query, last_query);
    const Box keys = box(tile.first_key, last_key);
    if (apart(queries.top, queries.bottom, keys.top, keys.bottom) > radius ||
        apart(queries.left, queries.right, keys.left, keys.right) > radius) {
      return Coverage::none;
    }
    const bool whole = first_query == tile.first_query && last_query == tile.last_query &&
                       last_key == tile.last_key;
    return whole && reach(queries.top, queries.bottom, keys.top, keys.bottom) <= radius &&
                   reach(queries.left, queries.right, keys.left, keys.right) <= radius
               ? Coverage::full
               : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = inside(key) ? word(tile, key / columns, key % columns) : 0;
    }
  }
  void check(MaskShape shape) const {
    constexpr Index limit = std::numeric_limits<Index>::max() / 4;
    if (rows < 1 || columns < 1 || radius < 0 || rows > limit / columns) {
      throw_shape_error("GridNeighborhood: ", rows, " × ", columns, " cells, radius ", radius);
    }
    detail::check_describes("GridNeighborhood", rows * columns, shape);
  }

 private:
  struct Box {
    Index top, bottom, left, right;
  };
  /// The smallest box of cells around a run of positions.
  Box box(Index first, Index last) const {
    const Index top = first / columns, bottom = last / columns;
    return {top, bottom, top == bottom ? first % columns : 0,
            top == bottom ? last % columns : columns - 1};
  }
  /// The queries of a tile near one cell: a run of lanes in each of its rows.
  std::uint64_t word(const Tile& tile, Index row, Index column) const {
    const Index first_query = tile.first_query < 0 ? 0 : tile.first_query;
    const Index left = column < radius ? 0 : column - radius;
    const Index right = columns - 1 - column < radius ? columns - 1 : column + radius;
    std::uint64_t word = 0;
    for (Index at = first_query / columns; at * columns <= tile.last_query && at < rows; ++at) {
      if (!near(at, row)) continue;
      const Index start = at * columns - tile.first_query;
      word |= lanes_between(start + left, start + right);
    }
    return word;
  }
  /// Smallest and largest distance between members of two ranges.
  static Index apart(Index first, Index last, Index other_first, Index other_last) {
    return detail::larger(0, detail::larger(other_first - last, first - other_last));
  }
  static Index reach(Index first, Index last, Index other_first, Index other_last) {
    return detail::larger(other_last - first, last - other_first);
  }
  bool near(Index a, Index b) const { return (a < b ? b - a : a - b) <= radius; }
  bool inside(Index position) const { return position >= 0 && position < rows * columns; }
  Index clip(Index position) const {
    return position < rows * columns ? position : rows * columns - 1;
  }
};

}  // namespace heed::masks
