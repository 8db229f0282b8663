// SPDX-License-Identifier: MIT
#include <heed/attention/detail/backward_pass.hpp>

#include <heed/masks/intervals.hpp>

#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

TEST(KeyChunkPass, SharesOfChunksAddUpAndGradientsSurviveAPause) {
  const Shape shape{1, 2, 1, 150, 400, 10, 6};
  const Inputs<float> in(shape, 1);
  const Loss<float> loss(shape, 1);
  const auto forward = fused(shape, in, masks::Causal{});
  const auto expected = fused_gradients(shape, in, loss, masks::Causal{});
  Gradients<float> result(shape);
  const auto args = detail::checked_backward_args<float>(
      in.queries, in.keys, in.values, forward.out, forward.lse, loss.grad_out, result.queries,
      result.keys, result.values, {}, {.grad_log_sum_exp = loss.grad_lse});
  const masks::Causal causal;
  const MaskRef mask(causal);
  const detail::BackwardRows<float> rows(args);
  for (Index i = 0; i < rows.count(); ++i) rows.fill(i);
  std::fill(result.queries.begin(), result.queries.end(), 0.f);
  for (Index first = 0; first < shape.keys; first += detail::backward_chunk) {
    const Index end = std::min(first + detail::backward_chunk, shape.keys);
    for (const Index head : {0, 1}) {
      Tensor<float, 2> share({shape.queries, shape.head_dim});
      std::vector<unsigned char> written(3, 0);
      detail::KeyChunkPass<float> pass(args, mask, rows, 0, 0, first, end);
      head == 0 ? pass.begin() : pass.resume();
      pass.take_head(head, {share.data(), written.data()});
      head == 0 ? pass.pause() : pass.finish();
      for (Index q = 0; q < shape.queries; ++q) {
        // Query q stands at 250 + q and sees the keys up to there.
        const bool sees = 250 + std::min<Index>(q / 64 * 64 + 63, shape.queries - 1) >= first;
        ASSERT_EQ(written[static_cast<std::size_t>(q / 64)] != 0, sees) << first;
        for (Index d = 0; sees && d < shape.head_dim; ++d) {
          result.queries(0, head, q, d) += share(q, d);
        }
      }
    }
  }
  EXPECT_TRUE(same_bits(result, expected));
}

}  // namespace
}  // namespace heed::test
