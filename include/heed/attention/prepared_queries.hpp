// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/backward_problem.hpp>
#include <heed/attention/backward_rows.hpp>
#include <heed/attention/backward_scratch.hpp>
#include <heed/attention/copy_rows.hpp>
#include <heed/simd/backward_kernels.hpp>
#include <heed/simd/kernels.hpp>

namespace heed::detail {

/// A block of queries made ready for the backward kernels: rows that lie in whole vectors, and
/// transposed.
template <class T>
class PreparedQueries {
 public:
  PreparedQueries(const BackwardProblem<T>& problem, const BackwardRows<T>& rows)
      : problem_(problem),
        rows_(rows),
        forward_kernels_(simd::kernels<T>()),
        kernels_(simd::backward_kernels<T>()) {}

  /// Rows [row, row + count) of one head, in the arrays of `scratch`; the gradient starts from 0.
  void prepare(const BackwardScratch<T>& scratch, Index item, Index head, Index row, Index count) {
    const auto& call = problem_.forward;
    const Index head_dim = call.head_dim(), value_dim = call.value_dim();
    count_ = count;
    queries_ = aligned(strided_rows(call.queries, item, head, row), head_dim, scratch.queries,
                       scratch.head_row);
    gradient_ = aligned(strided_rows(problem_.grad_output, item, head, row), value_dim,
                        scratch.grad_output, scratch.value_row);
    const auto factor = static_cast<T>(static_cast<double>(call.scale) * bits_per_nat);
    kernels_.pack(queries_, count, head_dim, factor, scratch.packed_queries);
    kernels_.pack(gradient_, count, value_dim, T{1}, scratch.packed_gradient);
    for (Index i = 0; i < head_dim * simd::query_block; ++i) scratch.grad_queries[i] = T{0};
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
              false};
    checked_ = false;
  }

  /// The block for a kernel call. NaN and Inf are looked for where it is `partly` masked: there
  /// they must not meet a 0.
  const simd::BackwardQueries<T>& block(bool partly) {
    if (partly && !checked_) {
      block_.guard_rows = !forward_kernels_.all_finite(queries_, count_, block_.head_dim) ||
                          !forward_kernels_.all_finite(gradient_, count_, block_.value_dim);
      checked_ = true;
    }
    return block_;
  }

 private:
  /// Rows where they lie, if they do so in whole vectors; else copied to `to`.
  simd::Strided<T> aligned(const simd::Strided<T>& from, Index columns, T* to, Index padded) const {
    if (from.column_stride == 1 && columns == padded && from.row_stride == padded &&
        reinterpret_cast<std::uintptr_t>(from.data) % 64 == 0) {
      return from;
    }
    copy_rows(from, count_, columns, to, padded);
    return {to, padded, 1};
  }

  const BackwardProblem<T>& problem_;
  const BackwardRows<T>& rows_;
  const simd::Kernels<T>& forward_kernels_;
  const simd::BackwardKernels<T>& kernels_;
  simd::Strided<T> queries_;
  simd::Strided<T> gradient_;
  simd::BackwardQueries<T> block_;
  Index count_ = 0;
  bool checked_ = false;
};

}  // namespace heed::detail
