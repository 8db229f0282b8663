// SPDX-License-Identifier: MIT
#include <heed/tensor/detail/gemm.inl>

#include <gtest/gtest.h>

#include <vector>

#include "support/attention_cases.hpp"

namespace heed::detail {
namespace {

ProductArgs<float> product(Index rows, Index columns, simd::QuantizedPanel weights = {}) {
  ProductArgs<float> args{};
  args.rows = rows;
  args.columns = columns;
  args.quantized = weights;
  return args;
}

TEST(ProductCut, TasksCoverEveryPanelAndRowOnce) {
  const test::RestoreSettings restore;
  for (const Index threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const Index rows : {1, 5, 6, 97, 500}) {
      for (const Index columns : {1, 64, 65, 700}) {
        const Index wanted = threads * (rows % 3 + 1);
        const Index panels = (columns + 63) / 64;
        std::vector<int> seen(static_cast<std::size_t>(rows * panels), 0);
        simd::QuantizedPanel weights;
        if (threads == 3) weights.products = Products::bfloat16;
        const Index most = threads == 3 ? ProductCut::max_bfloat16_group : ProductCut::max_group;
        const ProductCut cut(product(rows, columns, weights), wanted);
        for (Index i = 0; i < cut.count(); ++i) {
          const auto task = cut.task(i);
          ASSERT_LE(task.last - task.first, most);
          ASSERT_LT(task.first, task.last);
          ASSERT_LT(task.row, task.end) << "a task of nothing";
          for (Index panel = task.first; panel < task.last; ++panel) {
            for (Index row = task.row; row < task.end; ++row) {
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

TEST(ProductCut, AsManyTasksAsWantedWhereThereAre) {
  EXPECT_EQ(ProductCut(product(1, 128), 1).count(), 1);
  EXPECT_EQ(ProductCut(product(1, 128), 2).count(), 2);
  EXPECT_GE(ProductCut(product(512, 512), 4).count(), 4);
  EXPECT_GE(ProductCut(product(1, 4096), 4).count(), 4);
}

TEST(ProductCut, RowsAreRoundedOnceForPanelsStoredInBfloat16) {
  const std::uint8_t stored = 0;
  const simd::QuantizedPanel weights{&stored, simd::QuantizedCodes::bfloat16, Products::bfloat16};
  const test::RestoreSettings restore;
  set_thread_count(1);
  EXPECT_EQ(ProductCut(product(512, 4096, weights), 1).count(), 1);
  set_thread_count(2);
  EXPECT_GE(ProductCut(product(512, 4096, weights), 6).count(), 6);
}

}  // namespace
}  // namespace heed::detail
