// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/shared_array.hpp>
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
      : rows_(rows), columns_(columns), block_(block), counts_(counted(rows, columns, block, on)) {}

  Index block() const { return block_; }

  bool allows(Position at) const {
    if (at.query < 0 || at.query >= rows_ * block_ || at.key >= columns_ * block_) return false;
    return is_on(at.query / block_, at.key / block_);
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
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key;) {
      const Index column = key / block_;
      const std::uint64_t word = column < columns_ ? column_word(tile, column) : 0;
      for (; key <= tile.last_key && key / block_ == column; ++key) *words++ = word;
    }
  }
  void check(MaskShape shape) const {
    detail::check_describes("BlockSparse", "queries", rows_ * block_, shape.last_query + 1, shape);
    detail::check_describes("BlockSparse", "keys", columns_ * block_, shape.keys, shape);
  }

 private:
  template <class On>
  static detail::SharedArray<Index> counted(Index rows, Index columns, Index block, On& on) {
    constexpr Index limit = std::numeric_limits<Index>::max() / 4;
    if (rows < 0 || columns < 0 || block < 1 || rows > limit / block || columns > limit / block) {
      throw_shape_error("BlockSparse: ", rows, " × ", columns, " squares of ", block);
    }
    const Index width = columns + 1;
    return detail::SharedArray<Index>::filled((rows + 1) * width, [&](Index* counts) {
      for (Index row = 0; row < rows; ++row) {
        const Index* above = counts + row * width;
        Index* here = counts + (row + 1) * width;
        for (Index column = 0; column < columns; ++column) {
          here[column + 1] = above[column + 1] + here[column] - above[column];
          if (on(row, column)) ++here[column + 1];
        }
      }
    });
  }
  /// The lanes of a tile whose queries see a column of squares.
  std::uint64_t column_word(const Tile& tile, Index column) const {
    const Index last_query = clip(tile.last_query, rows_);
    std::uint64_t word = 0;
    for (Index query = tile.first_query < 0 ? 0 : tile.first_query; query <= last_query;) {
      const Index row = query / block_, past = (row + 1) * block_;
      if (is_on(row, column)) {
        word |= lanes_between(query - tile.first_query, past - 1 - tile.first_query);
      }
      query = past;
    }
    return word;
  }
  Index clip(Index position, Index squares) const {
    return position < squares * block_ ? position : squares * block_ - 1;
  }
  Index count(Index row, Index column) const { return counts_[row * (columns_ + 1) + column]; }
  Index squares_on(Index top, Index bottom, Index left, Index right) const {
    return count(bottom + 1, right + 1) - count(top, right + 1) - count(bottom + 1, left) +
           count(top, left);
  }
  bool is_on(Index row, Index column) const { return squares_on(row, row, column, column) == 1; }

  Index rows_;
  Index columns_;
  Index block_;
  detail::SharedArray<Index> counts_;  // squares that are on above and left of a corner
};

}  // namespace heed::masks
