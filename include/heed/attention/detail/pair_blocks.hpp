// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/detail/key_blocks.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/attention/detail/score_units.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/simd/pair_kernels.hpp>

namespace heed::detail {

/// A call on tensors of bfloat16 as kernels that multiply pairs of numbers take it. Keys 2i and
/// 2i + 1 make a pair wherever they are met, since pairs decide bits. Memory of the thread.
template <class T>
class PairBlocks {
 public:
  /// Room for `rows` decoded rows of queries. Without kernels, null, nothing of it may be used.
  PairBlocks(const AttentionProblem<T>& problem, const simd::PairKernels<T>* kernels, Index rows)
      : problem_(problem), kernels_(kernels) {
    if (kernels_ == nullptr) return;
    const Index depth = whole_pairs(problem.head_dim()), columns = problem.value_dim();
    const auto carve = [&](Carver carver) {
      keys_ = carver.take<std::uint16_t>(simd::key_block * depth);
      values_ = carver.take<std::uint16_t>(simd::key_block * columns);
      pairs_ = carver.take<std::uint16_t>(simd::key_block * columns + a_vector);
      packed_ = carver.take<std::uint16_t>(simd::row_keys * depth);
      rows_ = carver.take<std::uint16_t>(rows * depth);
      probabilities_ = carver.take<std::uint16_t>(rows * simd::row_keys);
      words_ = carver.take<std::uint64_t>(simd::key_block);
      kept_ = carver.take<Index>(simd::key_block);
      return carver.used();
    };
    carve(Carver(Scratch::of_this_thread<PairBlocks>(carve(Carver(nullptr)))));
  }

  /// Whether products are those of pairs.
  explicit operator bool() const { return kernels_ != nullptr; }

  /// Packs the queries [first, first + count) of a head for `attend`.
  void pack(Index item, Index head, Index first, Index count) const {
    const auto& queries = problem_.queries;
    kernels_->pack({queries.bits(item, head, first), queries.stride(2), queries.stride(3)}, count,
                   problem_.head_dim(), packed_);
  }
  /// Takes the seen keys of a key head into the softmax of the packed queries, whose scratch and
  /// shape `queries` tells.
  void attend(Index item, Index key_head, const VisibleKeys& seen,
              const simd::QueryBlock<T>& queries, const simd::SoftmaxState<T>& state,
              bool first) const {
    const simd::PairQueries<T> block{packed_,       queries.probabilities, query_factor(problem_),
                                     queries.count, queries.head_dim,      queries.value_dim};
    kernels_->attend(bring(item, key_head, seen), block, state, first);
  }

  /// Copies one query to a row for `decode`.
  void copy_query(Index item, Index head, Index query, Index row) const {
    const Index depth = whole_pairs(problem_.head_dim());
    copy(problem_.queries, item, head, query, depth, rows_ + row * depth);
  }
  /// Keys that some query sees, with their values; whole pairs.
  simd::PairKeys bring(Index item, Index key_head, const VisibleKeys& seen) const {
    const Index columns = problem_.value_dim();
    const Run run = whole(seen);
    simd::PairKeys block;
    block.count = run.count;
    block.words = run.words;
    block.keys =
        rows_of(problem_.keys, item, key_head, run, whole_pairs(problem_.head_dim()), keys_);
    kernels_->zip(rows_of(problem_.values, item, key_head, run, columns, values_), run.count,
                  columns, pairs_);
    block.values = pairs_;
    block.guard_values =
        run.words != nullptr && !kernels_->all_finite(pairs_, whole_pairs(run.count) * columns);
    return block;
  }
  /// Takes the keys into the softmax of the copied rows, whose states and shape `rows` tells.
  void decode(const simd::PairKeys& keys, const simd::QueryRows<T>& rows) const {
    simd::PairRows<T> pairs;
    pairs.rows = rows_;
    pairs.packed = packed_;
    pairs.scores = rows.scores;
    pairs.probabilities = probabilities_;
    pairs.maximum = rows.maximum;
    pairs.sum = rows.sum;
    pairs.output = rows.output;
    pairs.output_stride = rows.output_stride;
    pairs.visible = rows.visible;
    pairs.factor = query_factor(problem_);
    pairs.count = rows.count;
    pairs.head_dim = rows.head_dim;
    pairs.depth = whole_pairs(rows.head_dim) / 2;
    pairs.value_dim = rows.value_dim;
    kernels_->decode(keys, pairs);
  }

 private:
  static constexpr Index a_vector = 32;  // of the widest, in numbers of bfloat16

  static Index whole_pairs(Index count) { return (count + 1) / 2 * 2; }

  /// Keys in whole pairs: the seen ones and their partners.
  struct Run {
    Index first = 0;  // even
    Index count = 0;
    const std::uint64_t* words = nullptr;
    const Index* kept = nullptr;  // not null: only the keys first + kept[0], first + kept[1], …
  };
  Run whole(const VisibleKeys& seen) const {
    const Index before = seen.first % 2;
    Run run{seen.first - before, seen.count + before, seen.words, nullptr};
    if (before != 0 || seen.holes) {
      words_[0] = 0;
      for (Index i = 0; i < seen.count; ++i) {
        words_[before + i] = seen.words != nullptr ? seen.words[i] : ~std::uint64_t{0};
      }
      run.words = words_;
    }
    if (!seen.holes) return run;
    const Index end = run.count;
    run.count = 0;
    for (Index key = 0; key < end; key += 2) {
      const Index last = key + 1 < end ? key + 1 : key;
      if ((words_[key] | words_[last]) == 0) continue;
      for (Index each = key; each <= last; ++each) {
        kept_[run.count] = each;
        words_[run.count++] = words_[each];
      }
    }
    run.kept = kept_;
    return run;
  }

  /// Copies a row of an operand, with zeros behind its columns.
  static void copy(const Operand<T>& operand, Index item, Index head, Index token, Index padded,
                   std::uint16_t* to) {
    const std::uint16_t* from = operand.bits(item, head, token);
    const Index columns = operand.extent(3), step = operand.stride(3);
    for (Index d = 0; d < padded; ++d) to[d] = d < columns ? from[d * step] : std::uint16_t{0};
  }
  /// The run's rows where they lie, if a kernel can read `columns` columns of them there; or
  /// copied.
  static simd::MatrixRef<std::uint16_t> rows_of(const Operand<T>& operand, Index item, Index head,
                                                const Run& run, Index columns, std::uint16_t* to) {
    if (run.kept == nullptr && columns == operand.extent(3) && operand.stride(3) == 1 &&
        operand.in_one_piece(run.first, run.count)) {
      return {operand.bits(item, head, run.first), operand.stride(2), 1};
    }
    for (Index i = 0; i < run.count; ++i) {
      const Index token = run.first + (run.kept != nullptr ? run.kept[i] : i);
      copy(operand, item, head, token, columns, to + i * columns);
    }
    return {to, columns, 1};
  }

  const AttentionProblem<T>& problem_;
  const simd::PairKernels<T>* kernels_;
  std::uint16_t* keys_ = nullptr;
  std::uint16_t* values_ = nullptr;
  std::uint16_t* pairs_ = nullptr;  // [key / 2][value_dim][2]
  std::uint16_t* packed_ = nullptr;
  std::uint16_t* rows_ = nullptr;
  std::uint16_t* probabilities_ = nullptr;
  std::uint64_t* words_ = nullptr;
  Index* kept_ = nullptr;
};

}  // namespace heed::detail
