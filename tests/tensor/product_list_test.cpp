// SPDX-License-Identifier: MIT
#include <heed/tensor/detail/gemm.inl>

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "support/attention_cases.hpp"

namespace heed::detail {
namespace {

ProductArgs<float> args(Index rows, Index columns, Index depth) {
  ProductArgs<float> given{};
  given.rows = rows;
  given.columns = columns;
  given.depth = depth;
  return given;
}

/// Whether every panel and row of every product is in one task.
void expect_each_once(const std::vector<ProductArgs<float>>& problems) {
  ProductList<float> list;
  std::vector<std::vector<std::atomic<int>>> seen;
  for (const auto& one : problems) {
    list.add(one);
    seen.emplace_back(static_cast<std::size_t>(one.rows * ((one.columns + 63) / 64)));
  }
  list.for_each_task([&](const ProductArgs<float>& one, const ProductCut::Task& task) {
    const auto index = static_cast<std::size_t>(&one - problems.data());
    for (Index panel = task.first; panel < task.last; ++panel) {
      for (Index row = task.row; row < task.end; ++row) {
        ++seen[index][static_cast<std::size_t>(panel * one.rows + row)];
      }
    }
  });
  for (const auto& times : seen) {
    for (const auto& count : times) ASSERT_EQ(count, 1);
  }
}

TEST(ProductList, EveryTaskOfEveryProductOnce) {
  const test::RestoreSettings restore;
  for (const Index threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const Index rows : {1, 7, 200}) {
      for (const Index depth : {16, 300, 2000}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << rows << " x " << depth);
        expect_each_once({args(rows, 700, depth)});
        expect_each_once({args(rows, 576, depth), args(rows, 192, depth), args(rows, 192, depth),
                          args(rows, 1, depth)});
      }
    }
  }
}

TEST(ProductList, NothingOfNone) { expect_each_once({}); }

}  // namespace
}  // namespace heed::detail
