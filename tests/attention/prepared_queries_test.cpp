// SPDX-License-Identifier: MIT
#include <heed/attention/detail/backward_pass.hpp>

#include <heed/masks/intervals.hpp>

#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

TEST(PreparedQueries, AlignedRowsStayWhereTheyAreAndOthersAreCopied) {
  const Index lanes = simd::backward_kernels<float>().row_lanes;
  const Shape shape{1, 1, 1, 70, 5, 2 * lanes, 3};
  Inputs<float> in(shape, 1);
  Loss<float> loss(shape, 1);
  loss.grad_out(0, 0, 66, 2) = INFINITY;
  const auto forward = fused(shape, in, masks::Full{});
  Gradients<float> written(shape);
  const auto args = detail::checked_backward_args<float>(
      in.queries, in.keys, in.values, forward.out, forward.lse, loss.grad_out, written.queries,
      written.keys, written.values, {}, {});
  const detail::BackwardRows<float> rows(args);
  for (Index i = 0; i < rows.count(); ++i) rows.fill(i);
  const auto scratch = detail::divided_scratch<detail::BackwardScratch<float>>(2 * lanes, 3, lanes);
  detail::PreparedQueries<float> queries(args, rows);
  queries.prepare(scratch, 0, 0, 0, 64);
  EXPECT_EQ(queries.block(false).queries, in.queries.data());
  EXPECT_EQ(queries.block(false).grad_output, scratch.grad_output);
  EXPECT_EQ(scratch.grad_output[63 * scratch.value_row + 2], loss.grad_out(0, 0, 63, 2));
  EXPECT_EQ(scratch.grad_output[63 * scratch.value_row + 3], 0.f);
  EXPECT_EQ(scratch.packed_gradient[2 * 64 + 63], loss.grad_out(0, 0, 63, 2));
  EXPECT_FALSE(queries.block(true).guard_rows);
  queries.prepare(scratch, 0, 0, 64, 6);
  EXPECT_EQ(queries.block(true).count, 6);
  EXPECT_EQ(queries.block(true).delta, rows.delta(1));
  EXPECT_TRUE(queries.block(true).guard_rows);
}

}  // namespace
}  // namespace heed::test
