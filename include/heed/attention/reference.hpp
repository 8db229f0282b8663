// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/options.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

// The forward pass. -------------------------------------------------------------------------------

namespace detail {

/// scale · q · k. The kernels scale the queries first; where that overflows in their units, the
/// result here is the same ±inf or NaN.
template <class T>
T reference_product(const AttentionArgs<T>& args, const Position& at, Index query) {
  const T factor = query_factor(args);
  T dot = 0, bits = 0;
  for (Index d = 0; d < args.head_dim(); ++d) {
    const T q = args.queries(at.batch, at.head, query, d);
    const T k = args.keys(at.batch, args.key_head(at.head), at.key, d);
    dot += q * k;
    bits += q * factor * k;
  }
  if (!(bits - bits == T{0})) return bits;
  const T score = dot * args.scale;
  if (score - score == T{0}) return score;
  return factor == T{0} ? T{0} : bits * (args.scale / factor);
}

/// The sum of a score and a bias; ±inf where the kernels' units, which are larger, have overflowed.
template <class T>
T reference_sum(const AttentionArgs<T>& args, T score, T bias) {
  if (args.score_mods.function.given()) return score + bias;
  return within_range(within_range(score) + within_range(bias));
}

/// One visible score, s = f(cap · tanh(scale · q · k / cap) + biases), and its
/// derivatives with respect to the biases and to scale · q · k.
template <class T>
struct ReferenceScore {
  T score = 0;
  T by_bias = 1;
  T by_product = 1;
};

template <class T>
ReferenceScore<T> reference_score(const AttentionArgs<T>& call, const Position& at, Index query) {
  const auto& score_mods = call.score_mods;
  ReferenceScore<T> result{reference_product(call, at, query)};
  if (score_mods.softcap != T{0}) {
    const T tanh = std::tanh(result.score / score_mods.softcap);
    result.score = score_mods.softcap * tanh;
    result.by_product = 1 - tanh * tanh;
  }
  if (score_mods.bias.given()) {
    result.score =
        reference_sum(call, result.score, score_mods.bias.view()(at.batch, at.head, query, at.key));
  }
  if (score_mods.along_diagonals()) {
    result.score =
        reference_sum(call, result.score, score_mods.at_distance(at.head, at.key - at.query));
  }
  if (score_mods.function.given()) {
    if (score_mods.function.differentiable()) {
      result.by_bias = score_mods.function.derivative(result.score, at);
      result.by_product *= result.by_bias;
    }
    result.score = score_mods.function.value(result.score, at);
  }
  result.score = within_range(result.score);
  return result;
}

/// One row of scores by definition, −inf where the mask hides the key.
template <class T, MaskPolicy M>
void reference_scores(const AttentionArgs<T>& args, const M& mask, Index item, Index head,
                      Index query, std::vector<T>& scores) {
  for (Index key = 0; key < args.key_count(); ++key) {
    T score = -std::numeric_limits<T>::infinity();
    const Position at = position_of(args, item, head, query, key);
    if (key < args.key_count_of(item) && allows(mask, at)) {
      score = reference_score(args, at, query).score;
    }
    scores[static_cast<std::size_t>(key)] = score;
  }
}

/// Sets the weights that dropout drops to zero and divides the others by the probability of
/// staying.
template <class T>
void reference_dropout(const AttentionArgs<T>& args, Position at, std::vector<T>& weights) {
  if (!args.score_mods.drops()) return;
  const T factor = static_cast<T>(DropoutDraws(args.score_mods.dropout).factor());
  for (at.key = 0; at.key < args.key_count(); ++at.key) {
    T& weight = weights[static_cast<std::size_t>(at.key)];
    weight = keeps(args.score_mods.dropout, at) ? weight * factor : T{0};
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

/// Attention by definition, as the formula reads: every score, a softmax over each row, a weighted
/// sum of values. Same arguments as `attention`, any floating-point type, plain loops, O(keys)
/// memory. The tests compare the fused kernel with it. A masked key is not read: its value is
/// skipped, not multiplied by 0. So are those of a row whose scores are all −inf.
template <Viewable Q, Viewable K, Viewable V, MaskPolicy M, Viewable Out>
void reference_attention(const Q& queries, const K& keys, const V& values, const M& mask, Out&& out,
                         const AttentionOptions<ValueOf<Q>>& options = {}) {
  using T = ValueOf<Q>;
  const auto args = detail::checked_args<T>(
      detail::as_rank_4(view_of(queries)), detail::as_rank_4(view_of(keys)),
      detail::as_rank_4(view_of(values)), detail::as_rank_4(view_of(out)), options);
  detail::check_mask_fits(MaskRef(mask), args);
  std::vector<T> weights(static_cast<std::size_t>(args.key_count()));
  for (Index item = 0; item < args.batch(); ++item) {
    for (Index head = 0; head < args.heads(); ++head) {
      for (Index query = 0; query < args.query_count(); ++query) {
        detail::reference_scores(args, mask, item, head, query, weights);
        constexpr T infinity = std::numeric_limits<T>::infinity();
        const bool empty =
            std::all_of(weights.begin(), weights.end(), [](T score) { return score == -infinity; });
        const auto& sinks = args.score_mods.sinks;
        const T lse =
            sinks.empty()
                ? detail::reference_softmax(weights)
                : detail::reference_softmax(
                      weights, detail::within_range(sinks[static_cast<std::size_t>(head)]));
        if (args.log_sum_exp.given()) args.log_sum_exp.view()(item, head, query) = lse;
        Position at = detail::position_of(args, item, head, query, 0);
        detail::reference_dropout(args, at, weights);
        for (Index d = 0; d < args.value_dim(); ++d) {
          T sum = 0;
          for (at.key = 0; !empty && at.key < args.key_count_of(item); ++at.key) {
            if (!allows(mask, at)) continue;
            sum += weights[static_cast<std::size_t>(at.key)] *
                   args.values(item, args.key_head(head), at.key, d);
          }
          args.out(item, head, query, d) = sum;
        }
      }
    }
  }
}

// The backward pass. ------------------------------------------------------------------------------

namespace detail {

/// Adds the gradient of a score to the gradients of its biases, where wanted.
template <class T>
void reference_biases(const BackwardArgs<T>& args, const Position& at, Index query, T grad) {
  const auto& more = args.more;
  const Index distance = at.key - at.query;
  if (more.grad_bias.given()) {
    const auto& out = more.grad_bias.view();
    out(out.extent(0) == 1 ? 0 : at.batch, out.extent(1) == 1 ? 0 : at.head,
        out.extent(2) == 1 ? 0 : query, out.extent(3) == 1 ? 0 : at.key) += grad;
  }
  if (!more.grad_alibi_slopes.empty()) {
    more.grad_alibi_slopes[static_cast<std::size_t>(at.head)] -=
        grad * static_cast<T>(distance < 0 ? -distance : distance);
  }
  const auto& relative = more.grad_relative_bias;
  if (relative.extent(1) == 0) return;
  const Index reach = relative.extent(1) / 2;
  const Index within = distance < -reach ? -reach : distance > reach ? reach : distance;
  relative(relative.extent(0) == 1 ? 0 : at.head, within + reach) += grad;
}

/// Adds the gradients of one visible pair. Its weight P = exp(s − lse) is recomputed from the
/// log-sum-exp; the gradient of s is P · (dP − delta), with dP = dO · v. Dropout drops some of P
/// and dP.
template <class T>
void reference_pair(const BackwardArgs<T>& args, const Position& at, Index query, T delta) {
  const auto& call = args.forward;
  const Index item = at.batch, head = at.head, key = at.key, key_head = call.key_head(head);
  const auto score = reference_score(call, at, query);
  T left = 1;
  if (call.score_mods.drops()) {
    const DropoutDraws draws(call.score_mods.dropout);
    left = keeps(call.score_mods.dropout, at) ? static_cast<T>(draws.factor()) : T{0};
  }
  T grad_weight = 0;
  for (Index d = 0; d < call.value_dim(); ++d) {
    grad_weight += args.grad_output(item, head, query, d) * call.values(item, key_head, key, d);
  }
  const T weight = std::exp(score.score - args.log_sum_exp(item, head, query));
  const T grad_score = weight * (grad_weight * left - delta);
  for (Index d = 0; d < call.value_dim(); ++d) {
    args.grad_values(item, key_head, key, d) +=
        weight * left * args.grad_output(item, head, query, d);
  }
  const T grad_product = call.scale * grad_score * score.by_product;
  for (Index d = 0; d < call.head_dim(); ++d) {
    args.grad_queries(item, head, query, d) += grad_product * call.keys(item, key_head, key, d);
    args.grad_keys(item, key_head, key, d) += grad_product * call.queries(item, head, query, d);
  }
  reference_biases(args, at, query, grad_score * score.by_bias);
}

/// delta = Σ_d dO · O minus the gradient of the log-sum-exp: the derivative of P's denominator.
template <class T>
T reference_delta(const BackwardArgs<T>& args, Index item, Index head, Index query) {
  T delta = 0;
  for (Index d = 0; d < args.forward.value_dim(); ++d) {
    delta += args.grad_output(item, head, query, d) * args.output(item, head, query, d);
  }
  const auto& given = args.more.grad_log_sum_exp;
  return given.given() ? delta - given.view()(item, head, query) : delta;
}

/// A sink is a key without a value: dP = 0, so its gradient is −P · delta. A query that sees no key
/// has output 0, whatever its grad_output holds.
template <class T>
void reference_sink(const BackwardArgs<T>& args, Index item, Index head, Index query, T delta,
                    bool sees) {
  if (args.more.grad_sinks.empty()) return;
  const auto index = static_cast<std::size_t>(head);
  if (!sees) {
    const auto& given = args.more.grad_log_sum_exp;
    delta = given.given() ? -given.view()(item, head, query) : T{0};
  }
  const T weight = std::exp(within_range(args.forward.score_mods.sinks[index]) -
                            args.log_sum_exp(item, head, query));
  args.more.grad_sinks[index] -= weight * delta;
}

template <class T, std::size_t Rank>
void write_zeros(const TensorView<T, Rank>& view) {
  for (Index i = 0; i < view.extent(0); ++i) {
    if constexpr (Rank == 1) {
      view(i) = T{0};
    } else {
      write_zeros(view.select(0, i));
    }
  }
}

}  // namespace detail

/// The gradients of attention by definition, as the formulas read: pair by pair of a query and a
/// key it sees. Same arguments as `attention_backward`, any floating-point type, plain loops. The
/// tests compare the fused kernel with it. A masked pair is not read. A query with log-sum-exp
/// −inf, which saw no key, has gradient 0 and contributes nothing to any other gradient.
template <Viewable Q, Viewable K, Viewable V, MaskPolicy M, Viewable Out, Viewable Lse,
          Viewable GradOut, Viewable GradQ, Viewable GradK, Viewable GradV>
void reference_backward(const Q& queries, const K& keys, const V& values, const M& mask,
                        const Out& output, const Lse& log_sum_exp, const GradOut& grad_output,
                        GradQ&& grad_queries, GradK&& grad_keys, GradV&& grad_values,
                        const AttentionOptions<ValueOf<Q>>& options = {},
                        const GradientOptions<ValueOf<Q>>& gradients = {}) {
  using T = ValueOf<Q>;
  const auto args =
      detail::checked_backward_args<T>(queries, keys, values, output, log_sum_exp, grad_output,
                                       grad_queries, grad_keys, grad_values, options, gradients);
  const auto& call = args.forward;
  detail::check_mask_fits(MaskRef(mask), call);
  detail::for_each_written(args, [](const char*, const auto& view) { detail::write_zeros(view); });
  for (Index item = 0; item < call.batch(); ++item) {
    for (Index head = 0; head < call.heads(); ++head) {
      for (Index query = 0; query < call.query_count(); ++query) {
        if (args.log_sum_exp(item, head, query) == -std::numeric_limits<T>::infinity()) continue;
        const T delta = detail::reference_delta(args, item, head, query);
        Position at = detail::position_of(call, item, head, query, 0);
        bool sees = false;
        for (; at.key < call.key_count_of(item); ++at.key) {
          if (!allows(mask, at)) continue;
          detail::reference_pair(args, at, query, delta);
          sees = true;
        }
        detail::reference_sink(args, item, head, query, delta, sees);
      }
    }
  }
}

}  // namespace heed
