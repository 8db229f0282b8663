// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>

#include <heed/attention/detail/backward_problem.hpp>
#include <heed/attention/detail/backward_scratch.hpp>
#include <heed/attention/detail/copy_rows.hpp>
#include <heed/attention/detail/score_change_block.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/simd/backward_kernels.hpp>

namespace heed::detail {

/// What the backward pass knows of every query before it meets a key: log-sum-exp in units of log2,
/// delta = Σ dO·O − the gradient of the log-sum-exp, and whether it saw any key at all. O(queries)
/// memory of the calling thread.
template <class T>
class BackwardRows {
 public:
  explicit BackwardRows(const BackwardProblem<T>& problem)
      : problem_(problem),
        kernels_(simd::backward_kernels<T>()),
        blocks_((problem.forward.query_count() + simd::query_block - 1) / simd::query_block) {
    const auto carve = [&](Carver carver) {
      log_sum_exp_ = carver.take<T>(count() * simd::query_block);
      delta_ = carver.take<T>(count() * simd::query_block);
      seeing_ = carver.take<std::uint64_t>(count());
      silent_ = carver.take<std::uint64_t>(count());
      return carver.used();
    };
    carve(Carver(Scratch::of_this_thread<BackwardRows>(carve(Carver(nullptr)))));
  }

  /// Blocks of queries of one head, and of all of them.
  Index blocks() const { return blocks_; }
  Index count() const { return problem_.forward.batch() * problem_.forward.heads() * blocks_; }

  /// Which of the `count` holds the row `row` of a head.
  Index index_of(Index item, Index head, Index row) const {
    return (item * problem_.forward.heads() + head) * blocks_ + row / simd::query_block;
  }

  /// Fills in one block of the `count`.
  void fill(Index index) const {
    const auto& call = problem_.forward;
    const Index item = index / blocks_ / call.heads();
    const Index head = index / blocks_ % call.heads();
    const Index row = index % blocks_ * simd::query_block;
    const Index left = call.query_count() - row;
    const Index rows = left < simd::query_block ? left : simd::query_block;
    T* lse = log_sum_exp_ + index * simd::query_block;
    T* delta = delta_ + index * simd::query_block;
    silent_[index] = find_dots(item, head, row, rows, delta);
    std::uint64_t seeing = 0;
    for (Index i = 0; i < rows; ++i) {
      const T value = problem_.log_sum_exp(item, head, row + i);
      const bool sees = !(value == -std::numeric_limits<T>::infinity());
      seeing |= static_cast<std::uint64_t>(sees) << i;
      lse[i] = sees ? static_cast<T>(static_cast<double>(value) * bits_per_nat) : T{0};
      const auto& more = problem_.more.grad_log_sum_exp;
      if (more.given()) delta[i] -= more.view()(item, head, row + i);
    }
    // Kernels compute whole tiles: lanes past the last query hold numbers.
    for (Index i = rows; i < simd::query_block; ++i) lse[i] = delta[i] = T{0};
    seeing_[index] = seeing;
  }

  const T* log_sum_exp(Index index) const { return log_sum_exp_ + index * simd::query_block; }
  const T* delta(Index index) const { return delta_ + index * simd::query_block; }
  /// One bit a query of the block: whether it saw a key.
  std::uint64_t seeing(Index index) const { return seeing_[index]; }
  /// One bit a query of the block: whether its output is exactly 0, as when it saw no key but a
  /// sink.
  std::uint64_t silent(Index index) const { return silent_[index]; }

 private:
  /// Σ dO · O of every row, and the rows whose output is 0.
  std::uint64_t find_dots(Index item, Index head, Index row, Index rows, T* delta) const {
    const auto& call = problem_.forward;
    const auto scratch =
        BackwardScratch<T>::of_this_thread(call.head_dim(), call.value_dim(), kernels_.row_lanes);
    T* output = scratch.packed_gradient;  // not in use yet, and as large
    copy_rows(strided_rows(problem_.grad_output, item, head, row), rows, call.value_dim(),
              scratch.grad_output, scratch.value_row);
    copy_rows(strided_rows(problem_.output, item, head, row), rows, call.value_dim(), output,
              scratch.value_row);
    kernels_.row_dots(scratch.grad_output, output, scratch.value_row, rows, delta);
    std::uint64_t silent = 0;
    for (Index i = 0; i < rows; ++i) {
      bool zero = true;
      for (Index d = 0; zero && d < call.value_dim(); ++d) {
        zero = output[i * scratch.value_row + d] == T{0};
      }
      silent |= static_cast<std::uint64_t>(zero) << i;
    }
    return silent;
  }

  const BackwardProblem<T>& problem_;
  const simd::BackwardKernels<T>& kernels_;
  Index blocks_;
  T* log_sum_exp_ = nullptr;
  T* delta_ = nullptr;
  std::uint64_t* seeing_ = nullptr;
  std::uint64_t* silent_ = nullptr;
};

}  // namespace heed::detail
