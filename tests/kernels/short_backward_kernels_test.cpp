// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <cmath>
#include <vector>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class ShortBackwardKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// One head: query i sees the keys up to i + 1.
struct Head {
  static constexpr Index rows = 5, keys = 7, dim = 6, columns = 9;

  Head() : bits(1) {
    q = random_tensor<double, 2>({rows, dim}, bits);
    k = random_tensor<double, 2>({keys, dim}, bits);
    v = random_tensor<double, 2>({keys, columns}, bits);
    g = random_tensor<double, 2>({rows, columns}, bits);
    for (Index key = 0; key < keys; ++key) {
      words.push_back((key < 2 ? 31u : 31u << (key - 1)) & 31u);  // a bit a query
    }
  }
  static bool sees(Index row, Index key) { return key <= row + 1; }
  double probability(Index row, Index key) const {
    double total = 0;
    for (Index other = 0; other < keys; ++other) {
      if (sees(row, other)) total += std::exp(score(row, other));
    }
    return sees(row, key) ? std::exp(score(row, key)) / total : 0;
  }
  double score(Index row, Index key) const {
    double sum = 0;
    for (Index d = 0; d < dim; ++d) sum += q(row, d) * k(key, d);
    return sum;
  }

  std::mt19937_64 bits;
  Tensor<double, 2> q, k, v, g;
  std::vector<std::uint64_t> words;
};

TEST_P(ShortBackwardKernels, BackwardIsTheDerivative) {
  Head head;
  Tensor<double, 2> out({Head::rows, Head::columns}), dp({Head::rows, Head::keys});
  std::vector<double> lse(64, 0.0), packed_q(16 * 6), packed_g(16 * 9), p(96 * 64), ds(96 * 64);
  std::vector<double> key_tail(96 * 16), query_tail(64 * 16), gradient_tail(64 * 16);
  for (Index i = 0; i < Head::rows; ++i) {
    double total = 0;
    for (Index j = 0; j < Head::keys; ++j) {
      if (Head::sees(i, j)) total += std::exp(head.score(i, j));
      for (Index c = 0; c < Head::columns; ++c) {
        out(i, c) += head.probability(i, j) * head.v(j, c);
        dp(i, j) += head.g(i, c) * head.v(j, c);
      }
    }
    lse[static_cast<std::size_t>(i)] = std::log2(total);
  }
  Tensor<double, 2> gq(head.q.extents()), gk(head.k.extents()), gv(head.v.extents());
  simd::ShortBackwardArgs<double> task;
  task.queries = {head.q.data(), Head::dim, 1};
  task.keys = {head.k.data(), Head::dim, 1};
  task.values = {head.v.data(), Head::columns, 1};
  task.output = {out.data(), Head::columns, 1};
  task.grad_output = {head.g.data(), Head::columns, 1};
  task.grad_queries = gq.data();
  task.grad_keys = gk.data();
  task.grad_values = gv.data();
  task.grad_query_row = task.grad_key_row = Head::dim;
  task.grad_value_row = Head::columns;
  task.log_sum_exp = lse.data();
  task.words = head.words.data();
  task.query_count = Head::rows;
  task.key_count = Head::keys;
  task.head_dim = Head::dim;
  task.value_dim = Head::columns;
  task.query_factor = 1.4426950408889634;
  task.scale = 1;
  task.packed_queries = packed_q.data();
  task.packed_gradient = packed_g.data();
  task.probabilities = p.data();
  task.grad_scores = ds.data();
  task.key_tail = key_tail.data();
  task.query_tail = query_tail.data();
  task.gradient_tail = gradient_tail.data();
  ASSERT_TRUE(simd::short_backward_kernel<double>()(task));

  Tensor<double, 2> expected_q(gq.extents()), expected_k(gk.extents()), expected_v(gv.extents());
  for (Index i = 0; i < Head::rows; ++i) {
    double delta = 0;
    for (Index j = 0; j < Head::keys; ++j) delta += head.probability(i, j) * dp(i, j);
    for (Index j = 0; j < Head::keys; ++j) {
      const double weight = head.probability(i, j), slope = weight * (dp(i, j) - delta);
      for (Index d = 0; d < Head::dim; ++d) {
        expected_q(i, d) += slope * head.k(j, d);
        expected_k(j, d) += slope * head.q(i, d);
      }
      for (Index c = 0; c < Head::columns; ++c) expected_v(j, c) += weight * head.g(i, c);
    }
  }
  const auto expect_near = [](const Tensor<double, 2>& a, const Tensor<double, 2>& b) {
    for (Index i = 0; i < a.size(); ++i) EXPECT_NEAR(a.data()[i], b.data()[i], 1e-13) << i;
  };
  expect_near(gq, expected_q);
  expect_near(gk, expected_k);
  expect_near(gv, expected_v);

  head.k(6, 0) = NAN;  // which the last query alone sees
  gq(0, 0) = 77;
  EXPECT_FALSE(simd::short_backward_kernel<double>()(task));
  EXPECT_EQ(gq(0, 0), 77);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ShortBackwardKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
