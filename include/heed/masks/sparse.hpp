// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include <heed/core/error.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/detail/positions.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Every `step`-th key before and after the query, counted from its own position. Combine with
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
    const Index stride = step < 64 ? step : 64;  // 64 ends the loop too, and a huge step overflows
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      std::uint64_t word = 0;
      Index lane = detail::floor_modulo(key - tile.first_query, step);
      for (; lane < 64; lane += stride) word |= std::uint64_t{1} << lane;
      *words++ = word;
    }
  }
  void check(MaskShape) const {
    if (step < 1) throw_invalid_argument("Strided: step ", step, "; expected at least 1");
  }

  /// Queries this far apart see the same keys and, combined with Causal, some of them.
  Index query_step() const { return step; }
  detail::SpacedStrided spaced(Index origin, Index by) const { return {step, origin, by}; }
};

/// Every `step`-th key of the sequence (0, step, 2·step, …), for every query. Combined with a
/// window, the sparse mask "neighbors and every stride-th token".
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
    if (step < 1) throw_invalid_argument("EveryNthKey: step ", step, "; expected at least 1");
  }
};

/// A coarse mask of `block` × `block` squares of scores, on or off. Square (row, column) holds
/// queries [row · block, …) and keys [column · block, …); positions outside the layout see nothing.
/// Coverage costs O(1), by prefix sums. Zaheer et al. 2020 (BigBird).
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
    const Index first_query = detail::larger(tile.first_query, 0);
    const Index last_query = detail::smaller(tile.last_query, rows_ * block_ - 1);
    const Index last_key = detail::smaller(tile.last_key, columns_ * block_ - 1);
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
  /// The lanes of a tile's queries that see a column of squares.
  std::uint64_t column_word(const Tile& tile, Index column) const {
    const Index last_query = detail::smaller(tile.last_query, rows_ * block_ - 1);
    std::uint64_t word = 0;
    for (Index query = detail::larger(tile.first_query, 0); query <= last_query;) {
      const Index row = query / block_, past = (row + 1) * block_;
      if (is_on(row, column)) {
        word |= lanes_between(query - tile.first_query, past - 1 - tile.first_query);
      }
      query = past;
    }
    return word;
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
  detail::SharedArray<Index> counts_;  // number of squares on above and left of a corner
};

/// A few tokens that see all tokens and are seen by all (such as [CLS]); combine with a window by
/// |. Beltagy et al. 2020 (Longformer).
class GlobalTokens {
 public:
  static constexpr bool depends_on_head = false;

  explicit GlobalTokens(std::initializer_list<Index> positions)
      : GlobalTokens(detail::SharedArray<Index>(positions)) {}
  explicit GlobalTokens(const detail::SharedArray<Index>& positions) : positions_(positions) {
    if (positions_.size() > 0 && positions_[0] < 0) {
      throw_invalid_argument("GlobalTokens: position ", positions_[0], " must not be negative");
    }
  }

  bool allows(Position at) const { return positions_.has(at.query) || positions_.has(at.key); }
  Coverage coverage(Tile tile) const {
    const Index queries = positions_.count(tile.first_query, tile.last_query);
    const Index keys = positions_.count(tile.first_key, tile.last_key);
    if (queries == 0 && keys == 0) return Coverage::none;
    return queries == tile.queries() || keys == tile.keys() ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    std::uint64_t global_queries = 0;
    for (Index i = positions_.rank(tile.first_query); i < positions_.size(); ++i) {
      if (positions_[i] > tile.last_query) break;
      global_queries |= std::uint64_t{1} << (positions_[i] - tile.first_query);
    }
    Index next = positions_.rank(tile.first_key);
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      const bool global = next < positions_.size() && positions_[next] == key;
      *words++ = global ? ~std::uint64_t{0} : global_queries;
      next += global ? 1 : 0;
    }
  }
  void check(MaskShape shape) const {
    if (positions_.size() > 0)
      detail::check_names("GlobalTokens", positions_[positions_.size() - 1], shape);
  }

 private:
  detail::PositionSet positions_;
};

/// Neighborhood attention on an image: position = row · columns + column, and a cell sees the cells
/// at most `radius` rows and columns away. Positions outside the grid see nothing. Hassani et al.
/// 2023 (NAT), without its shifted windows at the border. Add `& ValidKeys` for empty cells.
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
    const Index first_query = detail::larger(tile.first_query, 0);
    const Index last_query = detail::smaller(tile.last_query, rows * columns - 1);
    const Index last_key = detail::smaller(tile.last_key, rows * columns - 1);
    if (first_query > last_query || tile.first_key > last_key) return Coverage::none;
    const Box queries = box(first_query, last_query);
    const Box keys = box(tile.first_key, last_key);
    if (distance(queries.top, queries.bottom, keys.top, keys.bottom) > radius ||
        distance(queries.left, queries.right, keys.left, keys.right) > radius) {
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
      throw_invalid_argument("GridNeighborhood: ", rows, " × ", columns, " cells, radius ", radius,
                             "; expected 1 × 1 or more, radius 0 or more");
    }
    detail::check_describes("GridNeighborhood", rows * columns, shape);
  }

 private:
  struct Box {
    Index top, bottom, left, right;
  };
  /// The bounding box of the cells [first, last].
  Box box(Index first, Index last) const {
    const Index top = first / columns, bottom = last / columns;
    return {top, bottom, top == bottom ? first % columns : 0,
            top == bottom ? last % columns : columns - 1};
  }
  /// The queries of a tile near one cell: an interval of lanes in each row of the grid.
  std::uint64_t word(const Tile& tile, Index row, Index column) const {
    const Index first_query = detail::larger(tile.first_query, 0);
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
  static Index distance(Index first, Index last, Index other_first, Index other_last) {
    return detail::larger(0, detail::larger(other_first - last, first - other_last));
  }
  static Index reach(Index first, Index last, Index other_first, Index other_last) {
    return detail::larger(other_last - first, last - other_first);
  }
  bool near(Index a, Index b) const { return (a < b ? b - a : a - b) <= radius; }
  bool inside(Index position) const { return position >= 0 && position < rows * columns; }
};

}  // namespace heed::masks
