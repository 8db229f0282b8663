// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/forward.hpp>
#include <heed/attention/query_block_pass.hpp>
#include <heed/attention/weights.hpp>
#include <heed/core/parallel.hpp>

namespace heed::detail {

/// Below about this many multiply-adds a call stays on its own thread: waking another costs more.
inline constexpr double parallel_threshold = 2e6;

/// All blocks of queries, the last ones of a head first: under causal masks they cost most.
template <class T>
void run_forward(const AttentionProblem<T>& problem, const MaskRef& mask) {
  const Index blocks = (problem.query_count() + simd::query_block - 1) / simd::query_block;
  const Index heads = problem.heads();
  const auto run = [&](Index i) {
    const Index pair = i / blocks;
    const Index row = (blocks - 1 - i % blocks) * simd::query_block;
    const Index left = problem.query_count() - row;
    QueryBlockPass<T>(problem, mask, pair / heads, pair % heads, row,
                      left < simd::query_block ? left : simd::query_block)
        .run();
  };
  const Index count = problem.batch() * heads * blocks;
  const double work = static_cast<double>(count) * static_cast<double>(simd::query_block) *
                      static_cast<double>(problem.key_count()) *
                      static_cast<double>(problem.head_dim() + problem.value_dim());
  if (work < parallel_threshold) {
    for (Index i = 0; i < count; ++i) run(i);
  } else {
    parallel_for(count, run);
  }
}

/// Weights of `out.extent(0)` rows from `row` on of one head.
template <class T>
void run_weights_of(const AttentionProblem<T>& problem, const MaskRef& mask, Index item, Index head,
                    Index row, const TensorView<T, 2>& out) {
  const Index rows = out.extent(0);
  const Index blocks = (rows + simd::query_block - 1) / simd::query_block;
  parallel_for(blocks, [&](Index block) {
    const Index first = block * simd::query_block;
    const Index end = first + simd::query_block < rows ? first + simd::query_block : rows;
    QueryBlockPass<T>(problem, mask, item, head, row + first, end - first)
        .run_weights(out.slice(0, first, end));
  });
}

HEED_INLINE void run_weights(const AttentionProblem<float>& problem, const MaskRef& mask,
                             Index item, Index head, Index row, const TensorView<float, 2>& out) {
  run_weights_of(problem, mask, item, head, row, out);
}
HEED_INLINE void run_weights(const AttentionProblem<double>& problem, const MaskRef& mask,
                             Index item, Index head, Index row, const TensorView<double, 2>& out) {
  run_weights_of(problem, mask, item, head, row, out);
}

HEED_INLINE void run_attention(const AttentionProblem<float>& problem, const MaskRef& mask) {
  run_forward(problem, mask);
}
HEED_INLINE void run_attention(const AttentionProblem<double>& problem, const MaskRef& mask) {
  run_forward(problem, mask);
}

}  // namespace heed::detail
