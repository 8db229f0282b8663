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

  ProductCut(Index rows, Index columns, Index depth)
      : rows_(rows), panels_((columns + simd::panel_columns - 1) / simd::panel_columns) {
    const Index threads = thread_count();
    const Index each = pieces_a_thread(rows, columns, depth);
    parallel_ = threads > 1 && each > 0;
    const Index wanted = parallel_ ? threads * each : 1;  // pieces
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

  /// Calls run(piece) for all pieces, on the pool's threads where the product is worth waking them.
  template <class Run>
  void for_each_piece(const Run& run) const {
    if (parallel_) return parallel_for(count(), [&](Index i) { run(piece(i)); });
    for (Index i = 0; i < count(); ++i) run(piece(i));
  }

 private:
  /// 0 where a product takes less than some microseconds (a second thread gained a tenth on good
  /// days there, and lost a quarter on others), 1 where handing out pieces would be a good part.
  static Index pieces_a_thread(Index rows, Index columns, Index depth) {
    // To read a weight takes as long as to multiply some rows with it.
    const double work =
        static_cast<double>(rows + 4) * static_cast<double>(columns) * static_cast<double>(depth);
    return work < 1e6 ? 0 : work < 4e6 ? 1 : 3;
  }

  static constexpr Index rows_worth_packing = 96;

  bool parallel_ = false;
  Index rows_;
  Index panels_;
  Index group_;
  Index groups_;
  Index chunk_;
  Index chunks_;
};

}  // namespace heed::detail
