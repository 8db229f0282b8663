// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/simd/product_tile.hpp>

namespace heed::detail {

/// How the result of a product is cut into pieces for threads: groups of panels (64 columns each)
/// by chunks of rows. No cut decides a bit.
class ProductCut {
 public:
  static constexpr Index max_group = 4;  // panels

  struct Piece {
    Index first, last;  // panels
    Index row, end;     // rows
  };

  ProductCut() = default;
  /// About `wanted` pieces.
  ProductCut(Index rows, Index columns, Index wanted)
      : rows_(rows), panels_((columns + simd::panel_columns - 1) / simd::panel_columns) {
    const Index threads = thread_count();
    const Index most_chunks = larger(1, rows / rows_worth_packing);
    group_ = smaller(max_group, larger(1, panels_ * most_chunks / wanted));
    groups_ = (panels_ + group_ - 1) / group_;
    group_ = (panels_ + groups_ - 1) / groups_;
    groups_ = (panels_ + group_ - 1) / group_;
    Index chunks = smaller(most_chunks, (wanted + groups_ - 1) / groups_);
    while (chunks < most_chunks && groups_ * chunks % threads != 0) ++chunks;
    chunk_ = (rows + chunks - 1) / chunks;
    chunk_ = (chunk_ + simd::product_rows - 1) / simd::product_rows * simd::product_rows;
    chunks_ = (rows + chunk_ - 1) / larger(1, chunk_);
  }

  Index count() const { return groups_ * chunks_; }
  Piece piece(Index index) const {
    const Index first = index / chunks_ * group_, row = index % chunks_ * chunk_;
    return {first, smaller(first + group_, panels_), row, smaller(row + chunk_, rows_)};
  }

 private:
  static constexpr Index rows_worth_packing = 96;

  Index rows_ = 0;
  Index panels_ = 0;
  Index group_ = 1;
  Index groups_ = 0;
  Index chunk_ = 1;
  Index chunks_ = 0;
};

}  // namespace heed::detail
