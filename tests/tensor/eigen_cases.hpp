// SPDX-License-Identifier: MIT
#pragma once

// Included by two tests, after Eigen's door and attention in either order.

#include <gtest/gtest.h>

#include <heed/masks/intervals.hpp>
#include <heed/tensor/rows.hpp>

namespace heed::test {

/// Attention on Eigen matrices, row- and column-major, blocks and maps: the same bits as on
/// tensors.
inline void expect_attention_takes_eigen() {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXf queries = Eigen::MatrixXf::Random(7, 8);
  const RowMajor keys = RowMajor::Random(9, 8);
  Eigen::MatrixXf wide = Eigen::MatrixXf::Random(6, 20);
  const auto values = wide.block(1, 2, 5, 9).transpose();  // (9, 5)
  Eigen::MatrixXf all = Eigen::MatrixXf::Constant(10, 10, 3.0f);

  attention(queries, keys, values, masks::Causal{}, all.block(2, 1, 7, 5));
  const auto context = attention(queries, keys, values, masks::Causal{});

  const auto copied = [](const auto& matrix) {
    return Tensor<float, 2>::copy_of(view_of(std::as_const(matrix)));
  };
  const auto expected = attention(copied(queries), copied(keys), copied(values), masks::Causal{});
  for (Index row = 0; row < 10; ++row) {
    for (Index column = 0; column < 10; ++column) {
      const bool inside = row >= 2 && row < 9 && column >= 1 && column < 6;
      EXPECT_EQ(all(row, column), inside ? expected(row - 2, column - 1) : 3.0f);
      if (inside) {
        EXPECT_EQ(context(row - 2, column - 1), expected(row - 2, column - 1));
      }
    }
  }
  const Eigen::MatrixXf weights = softmax(queries);
  EXPECT_NEAR(weights.row(3).sum(), 1, 1e-6);
}

}  // namespace heed::test
