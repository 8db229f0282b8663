// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include <heed/attention/options.hpp>
#include <heed/attention/problem.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// One row of scores as the definition has them: scale · q · k, and −inf where the mask forbids.
template <class T, MaskPolicy M>
void reference_scores(const AttentionProblem<T>& problem, const M& mask, Index item, Index head,
                      Index query, std::vector<T>& scores) {
  for (Index key = 0; key < problem.key_count(); ++key) {
    T score = -std::numeric_limits<T>::infinity();
    if (mask.allows({item, head, problem.first_query_of(item) + query, key})) {
      T dot = 0;
      for (Index d = 0; d < problem.head_dim(); ++d) {
        dot += problem.queries(item, head, query, d) *
               problem.keys(item, problem.key_head(head), key, d);
      }
      score = dot * problem.scale;
    }
    scores[static_cast<std::size_t>(key)] = score;
  }
}

/// Scores to weights in place: w = exp(s − max s) / Σ exp(s − max s), all 0 if every score is −inf.
/// Returns the log-sum-exp.
template <class T>
T reference_softmax(std::vector<T>& scores) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T maximum = -infinity;
  for (const T score : scores) {
    if (score > maximum || score != score) maximum = score;
    if (maximum != maximum) break;
  }
  T sum = 0;
  for (T& score : scores) {
    score = score == -infinity ? T{0} : std::exp(score - maximum);
    sum += score;
  }
  if (sum == T{0}) return -infinity;
  for (T& score : scores) score /= sum;
  return maximum + std::log(sum);
}

}  // namespace detail

/// The definition of attention, as the formula reads: every score, a softmax over each row, a
/// weighted sum of values. Same arguments as `attention`, any floating-point type, plain loops,
/// O(keys) memory; the measure that the fused kernel is tested against. A masked key is not looked
/// at: its values are skipped, not multiplied by 0.
template <Viewable Q, Viewable K, Viewable V, MaskPolicy M, Viewable Out>
void reference_attention(const Q& queries, const K& keys, const V& values, const M& mask, Out&& out,
                         const AttentionOptions<ValueOf<Q>>& options = {}) {
  using T = ValueOf<Q>;
  const auto problem = detail::checked_problem<T>(
      detail::as_rank_4(view_of(queries)), detail::as_rank_4(view_of(keys)),
      detail::as_rank_4(view_of(values)), detail::as_rank_4(view_of(out)), options);
  detail::check_mask_fits(mask, problem);
  std::vector<T> weights(static_cast<std::size_t>(problem.key_count()));
  for (Index item = 0; item < problem.batch(); ++item) {
    for (Index head = 0; head < problem.heads(); ++head) {
      for (Index query = 0; query < problem.query_count(); ++query) {
        detail::reference_scores(problem, mask, item, head, query, weights);
        const T lse = detail::reference_softmax(weights);
        if (problem.log_sum_exp.given()) problem.log_sum_exp.view()(item, head, query) = lse;
        const Index position = problem.first_query_of(item) + query;
        for (Index d = 0; d < problem.value_dim(); ++d) {
          T sum = 0;
          for (Index key = 0; key < problem.key_count(); ++key) {
            if (!mask.allows({item, head, position, key})) continue;
            sum += weights[static_cast<std::size_t>(key)] *
                   problem.values(item, problem.key_head(head), key, d);
          }
          problem.out(item, head, query, d) = sum;
        }
      }
    }
  }
}

}  // namespace heed
