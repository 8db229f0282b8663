// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/weights.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// What one can say about all softmax weights without holding them.
template <class T>
struct WeightSummary {
  Tensor<T, 3> key_sums;      // (batch, heads, keys): what each key received from all queries
  Tensor<T, 3> largest;       // (batch, heads, queries): the largest weight of each query,
  Tensor<Index, 3> favorite;  // and the key that has it, the first of equals; −1: none seen
};

namespace detail {

template <class T>
WeightSummary<T> summary_of(const AttentionProblem<T>& problem, const MaskRef& mask) {
  const Index rows = problem.query_count(), columns = problem.key_count();
  WeightSummary<T> result{Tensor<T, 3>({problem.batch(), problem.heads(), columns}),
                          Tensor<T, 3>({problem.batch(), problem.heads(), rows}),
                          Tensor<Index, 3>({problem.batch(), problem.heads(), rows})};
  Tensor<T, 2> weights({simd::query_block, columns});
  for (Index item = 0; item < problem.batch(); ++item) {
    for (Index head = 0; head < problem.heads(); ++head) {
      Tensor<double, 1> sums({columns});
      for (Index first = 0; first < rows; first += simd::query_block) {
        const Index count = first + simd::query_block < rows ? simd::query_block : rows - first;
        run_weights(problem, mask, item, head, first, weights.view().slice(0, 0, count));
        for (Index row = 0; row < count; ++row) {
          T& largest = result.largest(item, head, first + row) = 0;
          Index& favorite = result.favorite(item, head, first + row) = -1;
          for (Index key = 0; key < columns; ++key) {
            const T weight = weights(row, key);
            sums(key) += static_cast<double>(weight);
            if (weight > largest) largest = weight, favorite = key;
          }
        }
      }
      for (Index key = 0; key < columns; ++key) {
        result.key_sums(item, head, key) = static_cast<T>(sums(key));
      }
    }
  }
  return result;
}

}  // namespace detail

/// The summary of the weights that `attention` with the same arguments uses: to drop keys that
/// nobody looks at from a cache, or to see where a head looks. O(64 · keys) memory beside the
/// result; sums run over queries in order, in double.
template <class Q, class K, class M, detail::IsOptions Options = detail::OptionsOf<Q>>
auto summarize_weights(const Q& queries, const K& keys, const M& mask,
                       const Options& options = {}) {
  if constexpr (detail::expect_weights_call<Options, M, Q, K>()) {
    const auto problem = detail::weights_problem(queries, keys, mask, options);
    return detail::summary_of(problem, MaskRef(mask));
  } else {
    return WeightSummary<float>();
  }
}

}  // namespace heed
