// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <vector>

#include <heed/core/bfloat16.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class DecodeKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(DecodeKernels, ScoresAreRowsTimesKeys) {
  const Index head_dim = 21, count = 90, rows = 7;
  std::mt19937_64 bits(1);
  const auto keys = random_tensor<double, 2>({count, head_dim}, bits);
  const auto queries = random_tensor<double, 2>({rows, head_dim}, bits);
  std::vector<double> packed(simd::row_keys * 21), scores(simd::row_keys * 7);
  simd::KeyBlock<double> block;
  block.keys = {keys.data(), head_dim, 1};
  block.count = count;
  simd::QueryRows<double> task;
  task.rows = queries.data();
  task.packed = packed.data();
  task.scores = scores.data();
  task.count = rows;
  task.head_dim = head_dim;
  simd::decode_kernels<double>().scores(block, task);
  const Index lanes = simd::kernels<double>().strip_lanes;
  for (Index row = 0; row < rows; ++row) {
    for (Index key = 0; key < count; ++key) {
      double dot = 0;
      for (Index d = 0; d < head_dim; ++d) dot += queries(row, d) * keys(key, d);
      const Index at = (key / lanes * rows + row) * lanes + key % lanes;
      EXPECT_NEAR(scores[static_cast<std::size_t>(at)], dot, 1e-13);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, DecodeKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
