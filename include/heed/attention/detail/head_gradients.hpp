// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>

#include <heed/attention/detail/backward_problem.hpp>
#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/detail/copy_rows.hpp>
#include <heed/attention/detail/head_runs.hpp>
#include <heed/attention/detail/key_blocks.hpp>
#include <heed/attention/detail/score_change_block.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/simd/head_gradient_kernels.hpp>

namespace heed::detail {

/// The backward pass of a call with short sequences, as HeadRuns is the forward: the mask is asked
/// once for all heads of a batch item, and a head is one call of a kernel. The same bits.
template <class T>
class HeadGradients {
 public:
  /// `fallback(key_head)` computes one of all key heads of the batch, where a kernel gives it back.
  HeadGradients(const BackwardProblem<T>& problem, const MaskRef& mask,
                FunctionRef<void(Index)> fallback)
      : problem_(problem),
        call_(problem.forward),
        mask_(mask),
        fallback_(fallback),
        group_(heads_together(call_.batch(), call_.heads(), mask)) {}

  /// Whether a call is one for HeadGradients.
  static bool take(const BackwardProblem<T>& problem) {
    const auto& call = problem.forward;
    const auto& more = problem.more;
    const auto together = [](const auto& tensor) { return tensor.stride(3) == 1; };
    return call.query_count() > 0 && call.query_count() <= simd::query_block &&
           call.key_count() > 0 && call.key_count() <= simd::key_block && problem.group() == 1 &&
           !call.changes.any() && call.changes.sinks.empty() && !more.grad_log_sum_exp.given() &&
           together(call.queries) && together(call.keys) && together(call.values) &&
           together(problem.output) && together(problem.grad_output) &&
           together(problem.grad_queries) && together(problem.grad_keys) &&
           together(problem.grad_values);
  }

  Index count() const { return call_.batch() * groups(); }

  void run(Index piece) const {
    const Index item = piece / groups(), head = piece % groups() * group_;
    const Index left = call_.heads() - head, end = head + (left < group_ ? left : group_);
    const Arrays arrays(call_);
    const Index keys = call_.key_count_of(item);
    const Tile tile = tile_of(call_, item, head, 0, call_.query_count(), 0, keys - 1);
    const VisibleKeys seen = keys == 0 ? VisibleKeys{} : visible_keys(mask_, tile, arrays.words);
    std::uint64_t anyone = lanes_between(0, call_.query_count() - 1);
    if (seen.words != nullptr) {
      anyone = 0;
      for (Index i = 0; i < seen.count; ++i) anyone |= seen.words[i];
    }
    for (Index each = head; each < end; ++each) {
      const bool plain = seen.count > 0 && !seen.holes;
      if (!plain || (anyone & ~take_log_sum_exp(item, each, arrays)) != 0 ||
          !simd::head_gradient_kernels<T>().backward(task(item, each, seen, arrays))) {
        fallback_(item * call_.heads() + each);
        continue;
      }
      clear_keys(item, each, 0, seen.first);
      clear_keys(item, each, seen.first + seen.count, call_.key_count());
    }
  }

 private:
  /// One thread's arrays; vectors hold up to 16 numbers.
  struct Arrays {
    explicit Arrays(const AttentionProblem<T>& call) {
      const auto carve = [&](Carver carver) {
        packed_queries = carver.take<T>(16 * call.head_dim());
        packed_gradient = carver.take<T>(16 * call.value_dim());
        probabilities = carver.take<T>(simd::key_block * simd::query_block);
        grad_scores = carver.take<T>(simd::key_block * simd::query_block);
        key_tail = carver.take<T>(simd::key_block * 16);
        query_tail = carver.take<T>(simd::query_block * 16);
        gradient_tail = carver.take<T>(simd::query_block * 16);
        log_sum_exp = carver.take<T>(simd::query_block);
        words = carver.take<std::uint64_t>(simd::key_block);
        return carver.used();
      };
      carve(Carver(Scratch::of_this_thread<HeadGradients>(carve(Carver(nullptr)))));
    }
    T* packed_queries;
    T* packed_gradient;
    T* probabilities;
    T* grad_scores;
    T* key_tail;
    T* query_tail;
    T* gradient_tail;
    T* log_sum_exp;
    std::uint64_t* words;
  };

  Index groups() const { return (call_.heads() + group_ - 1) / group_; }

  /// The log-sum-exp of the head in units of log2; one bit a query that saw a key.
  std::uint64_t take_log_sum_exp(Index item, Index head, const Arrays& arrays) const {
    std::uint64_t seeing = 0;
    for (Index i = 0; i < call_.query_count(); ++i) {
      const T value = problem_.log_sum_exp(item, head, i);
      const bool sees = !(value == -std::numeric_limits<T>::infinity());
      seeing |= static_cast<std::uint64_t>(sees) << i;
      arrays.log_sum_exp[i] =
          sees ? static_cast<T>(static_cast<double>(value) * bits_per_nat) : T{0};
    }
    for (Index i = call_.query_count(); i < simd::query_block; ++i) arrays.log_sum_exp[i] = T{0};
    return seeing;
  }

  static T* row_of(const TensorView<T, 4>& tensor, Index item, Index head, Index row) {
    return tensor.data_handle() + item * tensor.stride(0) + head * tensor.stride(1) +
           row * tensor.stride(2);
  }

  simd::HeadGradient<T> task(Index item, Index head, const VisibleKeys& seen,
                             const Arrays& arrays) const {
    simd::HeadGradient<T> task;
    task.queries = call_.queries.rows(item, head, 0);
    task.keys = call_.keys.rows(item, head, seen.first);
    task.values = call_.values.rows(item, head, seen.first);
    task.output = strided_rows(problem_.output, item, head, 0);
    task.grad_output = strided_rows(problem_.grad_output, item, head, 0);
    task.grad_queries = row_of(problem_.grad_queries, item, head, 0);
    task.grad_keys = row_of(problem_.grad_keys, item, head, seen.first);
    task.grad_values = row_of(problem_.grad_values, item, head, seen.first);
    task.grad_query_row = problem_.grad_queries.stride(2);
    task.grad_key_row = problem_.grad_keys.stride(2);
    task.grad_value_row = problem_.grad_values.stride(2);
    task.log_sum_exp = arrays.log_sum_exp;
    task.words = seen.words;
    task.query_count = call_.query_count();
    task.key_count = seen.count;
    task.head_dim = call_.head_dim();
    task.value_dim = call_.value_dim();
    task.query_factor = query_factor(call_);
    task.scale = call_.scale;
    task.packed_queries = arrays.packed_queries;
    task.packed_gradient = arrays.packed_gradient;
    task.probabilities = arrays.probabilities;
    task.grad_scores = arrays.grad_scores;
    task.key_tail = arrays.key_tail;
    task.query_tail = arrays.query_tail;
    task.gradient_tail = arrays.gradient_tail;
    return task;
  }

  /// Keys that nobody sees have gradients of 0.
  void clear_keys(Index item, Index head, Index first, Index end) const {
    for (Index key = first; key < end; ++key) {
      T* of_key = row_of(problem_.grad_keys, item, head, key);
      T* of_value = row_of(problem_.grad_values, item, head, key);
      for (Index d = 0; d < call_.head_dim(); ++d) of_key[d] = T{0};
      for (Index d = 0; d < call_.value_dim(); ++d) of_value[d] = T{0};
    }
  }

  const BackwardProblem<T>& problem_;
  const AttentionProblem<T>& call_;
  const MaskRef& mask_;
  FunctionRef<void(Index)> fallback_;
  Index group_;
};

}  // namespace heed::detail
