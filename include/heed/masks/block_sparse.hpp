// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// A coarse mask: squares of `block` × `block` scores, on or off. Square (row, column) holds
/// queries [row · block, …) and keys [column · block, …); positions outside the layout see nothing.
/// Coverage costs O(1), by running counts. Zaheer et al. 2020 (BigBird).
class BlockSparse {
 public:
  static constexpr bool depends_on_head = false;

  /// `on(row, column)` for a layout of `rows` × `columns` squares.
  template <std::predicate<Index, Index> On>
  BlockSparse(Index rows, Index columns, Index block, On on)
      : rows_(rows), columns_(columns), block_(block) {
    if (rows < 0 || columns < 0 || block < 1) {
      throw_shape_error("BlockSparse: ", rows, " × ", columns, " squares of ", block);
    }
    counts_.resize(static_cast<std::size_t>((rows + 1) * (columns + 1)));
    for (Index row = 0; row < rows; ++row) {
      for (Index column = 0; column < columns; ++column) {
        count(row + 1, column + 1) = count(row, column + 1) + count(row + 1, column) -
                                     count(row, column) + (on(row, column) ? 1 : 0);
      }
    }
  }

  Index block() const { return block_; }

  bool allows(Position at) const {
    if (at.query < 0 || at.query >= rows_ * block_ || at.key >= columns_ * block_) return false;
    return squares_on(at.query / block_, at.query / block_, at.key / block_, at.key / block_) == 1;
  }
  Coverage coverage(Tile tile) const {
    const Index first_query = tile.first_query < 0 ? 0 : tile.first_query;
    const Index last_query = clip(tile.last_query, rows_);
    const Index last_key = clip(tile.last_key, columns_);
    if (first_query > last_query || tile.first_key > last_key) return Coverage::none;
    const Index top = first_query / block_, bottom = last_query / block_;
    const Index left = tile.first_key / block_, right = last_key / block_;
    const Index on = squares_on(top, bottom, left, right);
    if (on == 0) return Coverage::none;
    const bool whole = first_query == tile.first_query && last_query == tile.last_query &&
                       last_key == tile.last_key;
    return whole && on == (bottom - top + 1) * (right - left + 1) ? Coverage::full
                                                                  : Coverage::partial;
  }

 private:
  Index clip(Index position, Index squares) const {
    return position < squares * block_ ? position : squares * block_ - 1;
  }
  Index& count(Index row, Index column) {
    return counts_[static_cast<std::size_t>(row * (columns_ + 1) + column)];
  }
  Index count(Index row, Index column) const {
    return counts_[static_cast<std::size_t>(row * (columns_ + 1) + column)];
  }
  Index squares_on(Index top, Index bottom, Index left, Index right) const {
    return count(bottom + 1, right + 1) - count(top, right + 1) - count(bottom + 1, left) +
           count(top, left);
  }

  Index rows_;
  Index columns_;
  Index block_;
  std::vector<Index> counts_;  // squares that are on above and left of a corner
};

}  // namespace heed::masks
