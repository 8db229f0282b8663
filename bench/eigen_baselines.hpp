// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <heed/tensor/eigen.hpp>
#include <heed/tensor/tensor.hpp>

// What one would write on Eigen alone, as the measure of what the fused kernel buys. Both compute
// every score; the causal form sets the masked ones to zero weight.

namespace heed::bench {

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Rows [first, first + rows) of one head: softmax(scale · Q Kᵀ) V with the scores in a matrix.
template <class Q, class K, class V, class Out>
void eigen_rows(const Q& q, const K& k, const V& v, Out&& out, Index first, Index rows,
                bool causal) {
  const float scale = 1 / std::sqrt(static_cast<float>(q.cols()));
  RowMatrix scores = q.middleRows(first, rows) * k.transpose() * scale;
  for (Index row = 0; row < rows; ++row) {
    const Index visible = causal ? first + row + 1 : k.rows();
    auto seen = scores.row(row).head(visible).array();
    seen = (seen - seen.maxCoeff()).exp();
    seen /= seen.sum();
    scores.row(row).tail(k.rows() - visible).setZero();
  }
  out.middleRows(first, rows).noalias() = scores * v;
}

/// `block` rows at a time; block = all of them is the naive form with the whole score matrix.
inline void eigen_attention(const Tensor<float, 4>& queries, const Tensor<float, 4>& keys,
                            const Tensor<float, 4>& values, Tensor<float, 4>& out, bool causal,
                            Index block) {
  const Index length = queries.extent(2);
  for (Index head = 0; head < queries.extent(1); ++head) {
    const auto matrix = [&](const Tensor<float, 4>& tensor) {
      const auto view = view_of(tensor).select(0, 0).select(0, head);
      return Eigen::Map<const RowMatrix>(view.data_handle(), view.extent(0), view.extent(1));
    };
    Eigen::Map<RowMatrix> to(&out(0, head, 0, 0), length, out.extent(3));
    for (Index first = 0; first < length; first += block) {
      const Index rows = std::min(block, length - first);
      // Blocks skip the keys after their last row; the naive form has only one block.
      const Index seen = causal ? first + rows : keys.extent(2);
      eigen_rows(matrix(queries), matrix(keys).topRows(seen), matrix(values).topRows(seen), to,
                 first, rows, causal);
    }
  }
}

}  // namespace heed::bench
