// SPDX-License-Identifier: MIT
#include <heed/tensor/detail/gemm.inl>

#include <gtest/gtest.h>

#include <vector>

#include "support/attention_cases.hpp"

namespace heed::detail {
namespace {

TEST(ProductCut, PiecesCoverEveryPanelAndRowOnce) {
  const test::RestoreSettings restore;
  for (const Index threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const Index rows : {1, 5, 6, 97, 500}) {
      for (const Index columns : {1, 64, 65, 700}) {
        const Index wanted = threads * (rows % 3 + 1);
        const Index panels = (columns + 63) / 64;
        std::vector<int> seen(static_cast<std::size_t>(rows * panels), 0);
        const ProductCut cut(rows, columns, wanted);
        for (Index i = 0; i < cut.count(); ++i) {
          const auto piece = cut.piece(i);
          ASSERT_LE(piece.last - piece.first, ProductCut::max_group);
          ASSERT_LT(piece.first, piece.last);
          ASSERT_LT(piece.row, piece.end) << "a piece of nothing";
          for (Index panel = piece.first; panel < piece.last; ++panel) {
            for (Index row = piece.row; row < piece.end; ++row) {
              ++seen[static_cast<std::size_t>(panel * rows + row)];
            }
          }
        }
        for (const int times : seen)
          ASSERT_EQ(times, 1) << threads << " " << rows << " " << columns;
      }
    }
  }
}

TEST(ProductCut, AsManyPiecesAsWantedWhereThereAre) {
  EXPECT_EQ(ProductCut(1, 128, 1).count(), 1);
  EXPECT_EQ(ProductCut(1, 128, 2).count(), 2);
  EXPECT_GE(ProductCut(512, 512, 4).count(), 4);
  EXPECT_GE(ProductCut(1, 4096, 4).count(), 4);
}

}  // namespace
}  // namespace heed::detail
