// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <cmath>
#include <vector>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class ShortForwardKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// Three heads over two key heads, written out: query i sees the keys up to i + 1.
TEST_P(ShortForwardKernels, AttendIsSoftmaxOfEveryHead) {
  const Index heads = 3, rows = 5, keys = 7, dim = 6, columns = 16;
  std::mt19937_64 bits(1);
  const auto q = random_tensor<double, 3>({heads, rows, dim}, bits);
  const auto k = random_tensor<double, 3>({2, keys, dim}, bits);
  const auto v = random_tensor<double, 3>({2, keys, columns}, bits);
  std::vector<double> packed(16 * 6), probabilities(16 * 96), output(16 * 16);
  std::vector<double> maximum(3 * 64), sum(3 * 64);
  std::vector<std::uint64_t> words;
  for (Index key = 0; key < keys; ++key) {
    words.push_back(key < 2 ? ~std::uint64_t{0} : ~std::uint64_t{0} << (key - 1));
  }
  Tensor<double, 3> out({heads, rows, columns});
  simd::ShortForwardArgs<double> run;
  run.queries = {q.data(), dim, 1};
  run.keys = {k.data(), dim, 1};
  run.values = {v.data(), columns, 1};
  run.out = out.data();
  run.query_head = rows * dim;
  run.out_head = rows * columns;
  run.key_head = keys * dim;
  run.value_head = keys * columns;
  run.out_row = columns;
  run.out_column = 1;
  run.heads = heads;
  run.first_head = 1;  // of four that share in pairs: key heads 0, 1, 1
  run.sharing = 2;
  run.query_count = rows;
  run.key_count = keys;
  run.head_dim = dim;
  run.value_dim = columns;
  run.query_factor = 1.4426950408889634;
  run.words = words.data();
  run.packed = packed.data();
  run.probabilities = probabilities.data();
  run.output = output.data();
  run.maximum = maximum.data();
  run.sum = sum.data();
  simd::short_forward_kernel<double>()(run);
  for (Index head = 0; head < heads; ++head) {
    const Index key_head = head == 0 ? 0 : 1;
    for (Index row = 0; row < rows; ++row) {
      double total = 0;
      std::vector<double> expected(16, 0.0);
      for (Index key = 0; key < std::min(keys, row + 2); ++key) {
        double score = 0;
        for (Index d = 0; d < dim; ++d) score += q(head, row, d) * k(key_head, key, d);
        total += std::exp(score);
        for (Index c = 0; c < columns; ++c) {
          expected[static_cast<std::size_t>(c)] += std::exp(score) * v(key_head, key, c);
        }
      }
      for (Index c = 0; c < columns; ++c) {
        EXPECT_NEAR(out(head, row, c), expected[static_cast<std::size_t>(c)] / total, 1e-13);
      }
      const auto at = static_cast<std::size_t>(head * 64 + row);
      EXPECT_NEAR(maximum[at] + std::log2(sum[at]), std::log2(total), 1e-13);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ShortForwardKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
