// SPDX-License-Identifier: MIT
#include <heed/attention/plan.hpp>

#include <gtest/gtest.h>

#include <heed/masks.hpp>

namespace heed {
namespace {

TEST(Plan, CountsTilesAsTheKernelVisitsThem) {
  const Tensor<float, 4> q({2, 3, 128, 4}), k({2, 3, 192, 4});
  const auto full = plan(q, k, masks::Full{});
  EXPECT_EQ(full.full, 2 * 3 * 2 * 2);
  EXPECT_EQ(full.tiles(), full.full);
  EXPECT_EQ(full.computed_share(), 1);
  // Queries stand at 64 … 191: the first block meets the diagonal in both key blocks, and so does
  // the second one, except that key block 0 lies wholly before it.
  const auto causal = plan(q, k, masks::Causal{});
  EXPECT_EQ(causal.partial, 6 * 3);
  EXPECT_EQ(causal.full, 6 * 1);
  const auto top = plan(q, k, masks::Causal{}, {.first_query = top_left});
  EXPECT_EQ(top.skipped, 6 * 1);
  const auto lambda = plan(q, k, masks::predicate([](Index, Index) { return false; }));
  EXPECT_EQ(lambda.partial, lambda.tiles());
}

TEST(Plan, NamesTheKernelsAndThreads) {
  const Tensor<double, 2> q({5, 4});
  const auto result = plan(q, q, masks::Full{});
  EXPECT_EQ(result.isa, simd::active());
  EXPECT_EQ(result.threads, thread_count());
  EXPECT_THROW(plan(q, Tensor<double, 2>({5, 3}), masks::Full{}), ShapeError);
  EXPECT_EQ(plan(Tensor<float, 2>({0, 4}), Tensor<float, 2>({0, 4}), masks::Full{}).tiles(), 0);
}

}  // namespace
}  // namespace heed
