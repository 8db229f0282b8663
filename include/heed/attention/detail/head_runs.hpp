// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/detail/key_blocks.hpp>
#include <heed/attention/detail/output_factors.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/attention/detail/query_block_pass.hpp>
#include <heed/core/config.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/simd/head_run_kernels.hpp>

namespace heed::detail {

/// Heads of a batch item that one piece takes: as many as share the mask's answers, and leave every
/// thread some four pieces.
inline Index heads_together(Index batch, Index heads, const MaskRef& mask) {
  constexpr Index most = 16;
  if (mask.depends_on_head() || batch == 0) return 1;
  const Index pieces = (4 * thread_count() + batch - 1) / batch;
  const Index each = (heads + pieces - 1) / pieces;
  return each < most ? each : most;
}

/// A call with short sequences, one block of queries and one of keys at most: what is done once a
/// block of queries elsewhere would cost more here than the attention itself. So the mask is asked
/// once for all heads of a batch item, and the kernel takes them in one call. The same bits.
template <class T>
class HeadRuns {
 public:
  /// `group` heads in one call of the kernel.
  HeadRuns(const AttentionProblem<T>& problem, const MaskRef& mask, Index group)
      : problem_(problem), mask_(mask), group_(group) {}

  /// Whether a call is one for HeadRuns.
  static bool take(const AttentionProblem<T>& problem) {
    return problem.query_count() >= fewest_queries && problem.query_count() <= simd::query_block &&
           problem.key_count() > 0 && problem.key_count() <= simd::key_block &&
           !problem.changes.any() && problem.changes.sinks.empty() && problem.queries.is_view() &&
           problem.keys.is_view() && problem.values.is_view();
  }

  void run(Index piece) const {
    const Index item = piece / groups(), head = piece % groups() * group_;
    const Index left = problem_.heads() - head, heads = left < group_ ? left : group_;
    const Arrays arrays(problem_, group_);
    const Index keys = problem_.key_count_of(item);
    const Tile tile = tile_of(problem_, item, head, 0, problem_.query_count(), 0, keys - 1);
    const VisibleKeys seen = keys == 0 ? VisibleKeys{} : visible_keys(mask_, tile, arrays.words);
    if (seen.count == 0 || seen.holes) {
      for (Index each = head; each < head + heads; ++each) {
        QueryBlockPass<T>(problem_, mask_, nullptr, item, each, 0, problem_.query_count()).run();
      }
      return;
    }
    simd::head_run_kernels<T>().attend(task(item, head, heads, seen, arrays));
    if (problem_.log_sum_exp.given()) write_log_sum_exp(item, head, heads, arrays);
  }

 private:
  // Fewer are decoded, whose lanes are keys.
  static constexpr Index fewest_queries = 4;

  /// One thread's arrays. Lanes past the last query belong to whole vectors, of up to 16 numbers.
  struct Arrays {
    Arrays(const AttentionProblem<T>& problem, Index group) {
      const auto carve = [&](Carver carver) {
        packed = carver.take<T>(16 * problem.head_dim());
        probabilities = carver.take<T>(16 * simd::key_block);
        output = carver.take<T>(16 * problem.value_dim());
        tail = carver.take<T>(16 * simd::key_block);
        maximum = carver.take<T>(group * simd::query_block);
        sum = carver.take<T>(group * simd::query_block);
        words = carver.take<std::uint64_t>(simd::key_block);
        return carver.used();
      };
      carve(Carver(Scratch::of_this_thread<HeadRuns>(carve(Carver(nullptr)))));
    }
    T* packed;
    T* probabilities;
    T* output;
    T* tail;
    T* maximum;
    T* sum;
    std::uint64_t* words;
  };

  Index groups() const { return parts_of(problem_.heads(), group_); }

  simd::HeadRun<T> task(Index item, Index head, Index heads, const VisibleKeys& seen,
                        const Arrays& arrays) const {
    const auto& p = problem_;
    simd::HeadRun<T> run;
    run.queries = p.queries.rows(item, head, 0);
    run.keys = p.keys.rows(item, p.key_head(head), seen.first);
    run.values = p.values.rows(item, p.key_head(head), seen.first);
    run.out = p.out.rows(item, head, 0);
    run.query_head = p.queries.stride(1);
    run.key_head = p.keys.stride(1);
    run.value_head = p.values.stride(1);
    run.out_head = p.out.stride(1);
    run.out_row = p.out.stride(2);
    run.out_column = p.out.stride(3);
    run.heads = heads;
    run.first_head = head;
    run.sharing = p.heads() / p.keys.extent(1);
    run.query_count = p.query_count();
    run.key_count = seen.count;
    run.head_dim = p.head_dim();
    run.value_dim = p.value_dim();
    run.query_factor = query_factor(p);
    run.words = seen.words;
    run.packed = arrays.packed;
    run.probabilities = arrays.probabilities;
    run.output = arrays.output;
    run.tail = arrays.tail;
    run.maximum = arrays.maximum;
    run.sum = arrays.sum;
    run.from_memory = from_memory();
    return run;
  }

  bool from_memory() const {
    constexpr double caches = 8 << 20;
    const auto& p = problem_;
    const Index numbers =
        p.query_count() * p.head_dim() + p.key_count() * (p.head_dim() + p.value_dim());
    return static_cast<double>(p.batch() * p.heads()) * static_cast<double>(numbers) * sizeof(T) >
           caches;
  }

  void write_log_sum_exp(Index item, Index head, Index heads, const Arrays& arrays) const {
    const auto& view = problem_.log_sum_exp.view();
    for (Index i = 0; i < heads; ++i) {
      for (Index row = 0; row < problem_.query_count(); ++row) {
        const Index at = i * simd::query_block + row;
        view(item, head + i, row) = log_sum_exp_of(arrays.maximum[at], arrays.sum[at]);
      }
    }
  }

  const AttentionProblem<T>& problem_;
  const MaskRef& mask_;
  Index group_;
};

}  // namespace heed::detail
