// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/attention/detail/score_units.hpp>
#include <heed/attention/options.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// scale · q · k. Where that overflows in the units of the kernels, which multiply queries first,
/// it is what it is there: ±inf or NaN.
template <class T>
T reference_product(const AttentionProblem<T>& problem, const Position& at, Index query) {
  const T factor = query_factor(problem);
  T dot = 0, bits = 0;
  for (Index d = 0; d < problem.head_dim(); ++d) {
    const T q = problem.queries(at.batch, at.head, query, d);
    const T k = problem.keys(at.batch, problem.key_head(at.head), at.key, d);
    dot += q * k;
    bits += q * factor * k;
  }
  if (!(bits - bits == T{0})) return bits;
  const T score = dot * problem.scale;
  if (score - score == T{0}) return score;
  return factor == T{0} ? T{0} : bits * (problem.scale / factor);
}

/// A score and what is added to it, as the kernels' units have room for them.
template <class T>
T reference_sum(const AttentionProblem<T>& problem, T score, T bias) {
  if (problem.changes.function.given()) return score + bias;
  return within_range(within_range(score) + within_range(bias));
}

/// scale → softcap → biases → the user's function.
template <class T>
T reference_changed(const AttentionProblem<T>& problem, const Position& at, Index query) {
  const auto& changes = problem.changes;
  T score = reference_product(problem, at, query);
  if (changes.softcap != T{0}) score = changes.softcap * std::tanh(score / changes.softcap);
  if (changes.bias.given()) {
    score = reference_sum(problem, score, changes.bias.view()(at.batch, at.head, query, at.key));
  }
  if (changes.along_diagonals()) {
    score = reference_sum(problem, score, changes.at_distance(at.head, at.key - at.query));
  }
  if (changes.function.given()) score = changes.function.value(score, at);
  return within_range(score);
}

/// One row of scores as the definition has them, −inf where the mask forbids.
template <class T, MaskPolicy M>
void reference_scores(const AttentionProblem<T>& problem, const M& mask, Index item, Index head,
                      Index query, std::vector<T>& scores) {
  for (Index key = 0; key < problem.key_count(); ++key) {
    T score = -std::numeric_limits<T>::infinity();
    const Position at = position_of(problem, item, head, query, key);
    if (key < problem.key_count_of(item) && allows(mask, at)) {
      score = reference_changed(problem, at, query);
    }
    scores[static_cast<std::size_t>(key)] = score;
  }
}

/// Zeros for the weights that dropout takes, the others divided by the share that stays.
template <class T>
void reference_dropout(const AttentionProblem<T>& problem, Position at, std::vector<T>& weights) {
  if (!problem.changes.drops()) return;
  const T factor = static_cast<T>(DropoutDraws(problem.changes.dropout).factor());
  for (at.key = 0; at.key < problem.key_count(); ++at.key) {
    T& weight = weights[static_cast<std::size_t>(at.key)];
    weight = keeps(problem.changes.dropout, at) ? weight * factor : T{0};
  }
}

/// Scores to weights in place: w = exp(s − max s) / Σ exp(s − max s), all 0 if every score is −inf.
/// A sink is one more score in maximum and sum. Returns the log-sum-exp.
template <class T>
T reference_softmax(std::vector<T>& scores, T sink = -std::numeric_limits<T>::infinity()) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T maximum = sink;
  for (const T score : scores) {
    if (score > maximum || score != score) maximum = score;
    if (maximum != maximum) break;
  }
  T sum = maximum == -infinity ? T{0} : std::exp(sink - maximum);
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
        const auto& sinks = problem.changes.sinks;
        const T lse =
            sinks.empty()
                ? detail::reference_softmax(weights)
                : detail::reference_softmax(
                      weights, detail::within_range(sinks[static_cast<std::size_t>(head)]));
        if (problem.log_sum_exp.given()) problem.log_sum_exp.view()(item, head, query) = lse;
        Position at = detail::position_of(problem, item, head, query, 0);
        detail::reference_dropout(problem, at, weights);
        for (Index d = 0; d < problem.value_dim(); ++d) {
          T sum = 0;
          for (at.key = 0; at.key < problem.key_count_of(item); ++at.key) {
            if (!allows(mask, at)) continue;
            sum += weights[static_cast<std::size_t>(at.key)] *
                   problem.values(item, problem.key_head(head), at.key, d);
          }
          problem.out(item, head, query, d) = sum;
        }
      }
    }
  }
}

}  // namespace heed
