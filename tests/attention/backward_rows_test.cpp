// SPDX-License-Identifier: MIT
#include <heed/attention/detail/backward_pass.hpp>

#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

TEST(BackwardRows, DeltaLogSumExpAndWhoSees) {
  const Shape shape{2, 3, 3, 70, 5, 4, 21};
  const Inputs<double> in(shape, 1);
  const Loss<double> loss(shape, 1);
  Loss<double> forward(shape, 2);  // any output and log-sum-exp will do
  forward.grad_lse(1, 2, 65) = -std::numeric_limits<double>::infinity();
  Gradients<double> written(shape);
  const auto args = detail::checked_backward_args<double>(
      in.queries, in.keys, in.values, forward.grad_out, forward.grad_lse, loss.grad_out,
      written.queries, written.keys, written.values, {}, {.grad_log_sum_exp = loss.grad_lse});
  const detail::BackwardRows<double> rows(args);
  ASSERT_EQ(rows.blocks(), 2);
  ASSERT_EQ(rows.count(), 12);
  for (Index i = 0; i < 12; ++i) rows.fill(i);
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 3; ++h) {
      for (Index q = 0; q < 70; ++q) {
        const Index block = (b * 3 + h) * 2 + q / 64;
        double delta = -loss.grad_lse(b, h, q);
        for (Index d = 0; d < 21; ++d)
          delta += loss.grad_out(b, h, q, d) * forward.grad_out(b, h, q, d);
        EXPECT_NEAR(rows.delta(block)[q % 64], delta, 1e-14);
        const bool sees = std::isfinite(forward.grad_lse(b, h, q));
        EXPECT_EQ((rows.seeing(block) >> (q % 64) & 1) != 0, sees);
        if (!sees) continue;
        EXPECT_NEAR(rows.log_sum_exp(block)[q % 64], forward.grad_lse(b, h, q) / std::log(2.0),
                    1e-15);
      }
    }
  }
  EXPECT_EQ(rows.seeing(11) >> 6, 0u);
  EXPECT_EQ(rows.delta(11)[6], 0.0);
}

}  // namespace
}  // namespace heed::test
