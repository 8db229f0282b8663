// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include <heed/attention/detail/backward_problem.hpp>
#include <heed/attention/detail/backward_rows.hpp>
#include <heed/attention/detail/backward_scratch.hpp>
#include <heed/attention/detail/copy_rows.hpp>
#include <heed/attention/detail/forward_scratch.hpp>
#include <heed/attention/detail/score_change_block.hpp>
#include <heed/simd/backward_kernels.hpp>
#include <heed/simd/kernels.hpp>

namespace heed::detail {

/// A block of queries made ready for the backward kernels: rows that lie in whole vectors, and
/// transposed.
template <class T>
class PreparedQueries {
 public:
  /// `after_softcap`: gradients of scores are wanted as biases have them, not in front of a
  /// softcap.
  PreparedQueries(const BackwardProblem<T>& problem, const BackwardRows<T>& rows,
                  bool after_softcap = false)
      : problem_(problem),
        rows_(rows),
        after_softcap_(after_softcap),
        kernels_(simd::kernels<T>()) {}

  /// Rows [row, row + count) of one head, in the arrays of `scratch`; the gradient starts from 0.
  void prepare(const BackwardScratch<T>& scratch, Index item, Index head, Index row, Index count) {
    const auto& call = problem_.forward;
    const Index head_dim = call.head_dim(), value_dim = call.value_dim();
    count_ = count;
    queries_ =
        aligned(call.queries.rows(item, head, row), head_dim, scratch.queries, scratch.head_row);
    gradient_ = aligned(strided_rows(problem_.grad_output, item, head, row), value_dim,
                        scratch.grad_output, scratch.value_row);
    if (call.changes.any()) {
      tile_.emplace(ForwardScratch<T>::of_this_thread(0, 0, true));
      changes_.emplace(call, *tile_, item, head, row, count);
      first_ = {item + call.item_offset, head, call.first_query_of(item) + row, 0};
    }
    kernels_.pack(queries_, count, head_dim, query_factor(call), scratch.packed_queries);
    kernels_.pack(gradient_, count, value_dim, T{1}, scratch.packed_gradient);
    clear_numbers(scratch.grad_queries, head_dim * simd::query_block);
    const Index index = rows_.index_of(item, head, row);
    block_ = {queries_.data,
              gradient_.data,
              scratch.packed_queries,
              scratch.packed_gradient,
              rows_.log_sum_exp(index),
              rows_.delta(index),
              scratch.probabilities,
              scratch.grad_scores,
              scratch.grad_queries,
              count,
              head_dim,
              value_dim,
              false,
              nullptr,
              nullptr,
              after_softcap_};
    checked_ = false;
  }

  /// Gives a block of keys what changes its scores, if anything does. Key i of it is key
  /// `first_key + (kept ? kept[i] : i)`.
  void change(simd::KeyBlock<T>& block, Index first_key, const Index* kept) {
    if (!problem_.forward.changes.any()) return;
    simd::QueryBlock<T> queries{block_.packed_queries, tile_->probabilities, tile_->scores, count_,
                                block_.head_dim,       block_.value_dim};
    changes_->change(block, queries, first_key, kept);
    block_.scores = tile_->scores;
    if (problem_.forward.changes.function.given()) find_slopes(block, queries, first_key, kept);
  }

  /// The block for a kernel call. NaN and Inf are looked for where it is `partly` masked: there
  /// they must not meet a 0.
  const simd::BackwardQueries<T>& block(bool partly) {
    if (partly && !checked_) {
      block_.guard_rows = !kernels_.all_finite(queries_, count_, block_.head_dim) ||
                          !kernels_.all_finite(gradient_, count_, block_.value_dim);
      checked_ = true;
    }
    return block_;
  }

 private:
  /// The derivatives of a user's function at the scores that go into it.
  void find_slopes(const simd::KeyBlock<T>& block, simd::QueryBlock<T> queries, Index first_key,
                   const Index* kept) {
    Index keys[simd::key_block];
    for (Index i = 0; i < block.count; ++i) keys[i] = first_key + (kept ? kept[i] : i);
    queries.scores = tile_->probabilities;
    kernels_.scores(block, queries);
    const Index lanes = kernels_.tile_lanes;
    problem_.forward.changes.function.to_derivatives({queries.scores, lanes * simd::key_block,
                                                      lanes, keys, block.count, block.words, first_,
                                                      count_});
    block_.slopes = queries.scores;
  }

  /// Rows where they lie, if they do so in whole vectors; else copied to `to`.
  simd::MatrixRef<T> aligned(const simd::MatrixRef<T>& from, Index columns, T* to,
                             Index padded) const {
    if (from.column_stride == 1 && columns == padded && from.row_stride == padded &&
        reinterpret_cast<std::uintptr_t>(from.data) % 64 == 0) {
      return from;
    }
    copy_rows(from, count_, columns, to, padded);
    return {to, padded, 1};
  }

  const BackwardProblem<T>& problem_;
  const BackwardRows<T>& rows_;
  bool after_softcap_;
  const simd::Kernels<T>& kernels_;
  simd::MatrixRef<T> queries_;
  simd::MatrixRef<T> gradient_;
  simd::BackwardQueries<T> block_;
  std::optional<ForwardScratch<T>> tile_;
  std::optional<ScoreChangeBlock<T>> changes_;
  Position first_;  // of the first query
  Index count_ = 0;
  bool checked_ = false;
};

}  // namespace heed::detail
