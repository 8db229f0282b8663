// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <heed/attention/detail/backward_problem.hpp>
#include <heed/attention/detail/backward_rows.hpp>
#include <heed/attention/detail/score_gradients.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

/// The gradients of relative_bias and alibi_slopes, which hold for scores at one distance. A task
/// makes sums per distance of one block of queries of one head; `finish` adds them up in order.
/// Memory of the calling thread: (heads, queries / query_block, distances) numbers.
template <class T>
class DistanceGradients {
 public:
  DistanceGradients(const BackwardProblem<T>& problem, const MaskRef& mask,
                    const BackwardRows<T>& rows)
      : problem_(problem),
        call_(problem.forward),
        mask_(mask),
        rows_(rows),
        distances_(problem.more.grad_relative_bias.extent(1)) {
    const auto size = static_cast<std::size_t>(tasks() * (distances_ + 1));
    sums_ = reinterpret_cast<double*>(
        Scratch::of_this_thread<DistanceGradients>(size * sizeof(double)));
  }

  Index tasks() const { return call_.heads() * rows_.blocks(); }

  void run(Index task) const {
    const Index head = task / rows_.blocks(), row = task % rows_.blocks() * simd::query_block;
    double* sums = sums_ + task * (distances_ + 1);
    for (Index i = 0; i <= distances_; ++i) sums[i] = 0;
    ScoreGradientTiles<T> tiles(problem_, mask_, rows_);
    for (Index item = 0; item < call_.batch(); ++item) {
      const Index at = call_.first_query_of(item) + row;
      tiles.run(item, head, row, 0, call_.key_count(),
                [&](Index first_key, Index keys, Index queries, const T* grad) {
                  for (Index key = 0; key < keys; ++key) {
                    for (Index i = 0; i < queries; ++i) {
                      add(sums, first_key + key - at - i,
                          static_cast<double>(grad[key * simd::query_block + i]));
                    }
                  }
                });
    }
  }

  void finish() const {
    const auto& relative = problem_.more.grad_relative_bias;
    for (Index distance = 0; distance < distances_; ++distance) {
      for (Index line = 0; line < relative.extent(0); ++line) {
        const bool shared = relative.extent(0) == 1;
        const Index first = shared ? 0 : line, end = shared ? call_.heads() : line + 1;
        relative(line, distance) = static_cast<T>(sum(first, end, distance));
      }
    }
    const auto& slopes = problem_.more.grad_alibi_slopes;
    for (std::size_t head = 0; head < slopes.size(); ++head) {
      const auto index = static_cast<Index>(head);
      slopes[head] = static_cast<T>(sum(index, index + 1, distances_));
    }
  }

 private:
  /// A score's share: at its distance, and behind all of those − |distance| times it for the slope.
  void add(double* sums, Index distance, double grad) const {
    sums[distances_] -= grad * static_cast<double>(distance < 0 ? -distance : distance);
    if (distances_ == 0) return;
    const Index reach = distances_ / 2;
    sums[(distance < -reach ? -reach : distance > reach ? reach : distance) + reach] += grad;
  }
  double sum(Index first_head, Index end_head, Index slot) const {
    double total = 0;
    for (Index task = first_head * rows_.blocks(); task < end_head * rows_.blocks(); ++task) {
      total += sums_[task * (distances_ + 1) + slot];
    }
    return total;
  }

  const BackwardProblem<T>& problem_;
  const AttentionProblem<T>& call_;
  const MaskRef& mask_;
  const BackwardRows<T>& rows_;
  Index distances_;
  double* sums_ = nullptr;
};

/// The gradient of the sinks: a sink is a key without value, whose dP is 0, so that every query
/// gives −P · delta. In the order of the queries.
template <class T>
void run_sink_gradients(const BackwardProblem<T>& problem, const BackwardRows<T>& rows) {
  const auto& call = problem.forward;
  const auto& given = problem.more.grad_log_sum_exp;
  for (Index head = 0; head < call.heads(); ++head) {
    const auto index = static_cast<std::size_t>(head);
    const T sink = static_cast<T>(static_cast<double>(call.changes.sinks[index]) * bits_per_nat);
    double total = 0;
    for (Index item = 0; item < call.batch(); ++item) {
      for (Index row = 0; row < call.query_count(); ++row) {
        const Index block = rows.index_of(item, head, row), lane = row % simd::query_block;
        if ((rows.seeing(block) >> lane & 1) == 0) continue;
        T weight = sink - rows.log_sum_exp(block)[lane], delta = rows.delta(block)[lane];
        simd::kernels<T>().exp2(&weight, &weight, 1);
        if ((rows.silent(block) >> lane & 1) != 0) {
          delta = given.given() ? -given.view()(item, head, row) : T{0};
        }
        total -= static_cast<double>(weight) * static_cast<double>(delta);
      }
    }
    problem.more.grad_sinks[index] = static_cast<T>(total);
  }
}

}  // namespace heed::detail
