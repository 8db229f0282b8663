// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/head_runs.hpp>
#include <heed/attention/detail/query_block_pass.hpp>
#include <heed/attention/detail/run.hpp>
#include <heed/core/parallel.hpp>

namespace heed::detail {

/// Below about this many multiply-adds a call stays on its own thread: waking another costs more.
inline constexpr double parallel_threshold = 2e6;

/// How a call is cut into pieces for threads: batch items, groups of heads, blocks of queries.
template <class T>
class ForwardPieces {
 public:
  ForwardPieces(const AttentionProblem<T>& problem, const MaskRef& mask)
      : problem_(problem),
        mask_(mask),
        blocks_((problem.query_count() + simd::query_block - 1) / simd::query_block),
        group_(group_of_heads()),
        groups_(group_ == 0 ? 0 : (problem.heads() + group_ - 1) / group_) {}

  Index count() const { return problem_.batch() * groups_ * blocks_; }

  /// The last blocks of a head come first: under causal masks they cost most.
  void run(Index piece) const {
    const Index row = (blocks_ - 1 - piece % blocks_) * simd::query_block;
    const Index item = piece / blocks_ / groups_;
    const Index head = piece / blocks_ % groups_ * group_;
    const Index end = smaller(head + group_, problem_.heads());
    if (end - head == 1) return pass(item, head, row).run();
    SharedLaneWords shared((problem_.key_count() + simd::key_block - 1) / simd::key_block);
    for (Index each = head; each < end; ++each) {
      auto one = pass(item, each, row);
      one.share(shared);
      one.run();
    }
  }

 private:
  QueryBlockPass<T> pass(Index item, Index head, Index row) const {
    const Index rows = smaller(simd::query_block, problem_.query_count() - row);
    return QueryBlockPass<T>(problem_, mask_, item, head, row, rows);
  }

  /// One head at a time keeps its keys in the caches. Heads go together where the mask's answers
  /// are worth sharing, in as large groups as leave every thread some four pieces.
  Index group_of_heads() const {
    const Index heads = problem_.heads();
    if (!mask_.shares_lane_words() || heads < 2) return smaller(1, heads);
    const Index wanted = 4 * thread_count();
    const Index each = problem_.batch() * blocks_;
    const Index groups = each == 0 ? 1 : smaller(heads, (wanted + each - 1) / each);
    return (heads + groups - 1) / groups;
  }

  const AttentionProblem<T>& problem_;
  const MaskRef& mask_;
  Index blocks_;
  Index group_;
  Index groups_;
};

template <class T>
void run_attention(const AttentionProblem<T>& problem, const MaskRef& mask) {
  if (problem.query_count() == 0 || problem.heads() == 0) return;
  const double work = static_cast<double>(problem.batch() * problem.heads()) *
                      static_cast<double>(problem.query_count()) *
                      static_cast<double>(problem.key_count()) *
                      static_cast<double>(problem.head_dim() + problem.value_dim());
#if HEED_SIMD_ALL_KERNELS
  if (HeadRuns<T>::take(problem)) {
    return run_head_runs(problem, mask, work >= parallel_threshold);
  }
#endif
  const bool decodes = simd::decode_kernels<T>().attend != nullptr;
  if (decodes && problem.query_count() <= most_decoded_queries) {
    return run_decode(problem, mask, work >= parallel_threshold);
  }
  const ForwardPieces<T> pieces(problem, mask);
  if (work < parallel_threshold) {
    for (Index piece = 0; piece < pieces.count(); ++piece) pieces.run(piece);
  } else {
    parallel_for(pieces.count(), [&](Index piece) { pieces.run(piece); });
  }
}

/// Weights of `out.extent(0)` rows from `row` on of one head.
template <class T>
void run_weights(const AttentionProblem<T>& problem, const MaskRef& mask, Index item, Index head,
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

#if defined(HEED_COMPILED_SOURCE)
template void run_attention(const AttentionProblem<float>&, const MaskRef&);
template void run_attention(const AttentionProblem<double>&, const MaskRef&);
template void run_weights(const AttentionProblem<float>&, const MaskRef&, Index, Index, Index,
                          const TensorView<float, 2>&);
template void run_weights(const AttentionProblem<double>&, const MaskRef&, Index, Index, Index,
                          const TensorView<double, 2>&);
#endif

}  // namespace heed::detail
