// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>

#include <heed/attention/backward_problem.hpp>
#include <heed/attention/gradient_options.hpp>
#include <heed/attention/options.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// What one visible score s = scale · q · k gives: its weight P = exp(s − lse) is known again from
/// the log-sum-exp, and the gradient of s is P · (dP − delta), with dP = dO · v.
template <class T>
void reference_pair(const BackwardProblem<T>& problem, Index item, Index head, Index query,
                    Index key, T delta) {
  const auto& call = problem.forward;
  const Index key_head = call.key_head(head);
  T dot = 0;
  for (Index d = 0; d < call.head_dim(); ++d) {
    dot += call.queries(item, head, query, d) * call.keys(item, key_head, key, d);
  }
  T grad_weight = 0;
  for (Index d = 0; d < call.value_dim(); ++d) {
    grad_weight += problem.grad_output(item, head, query, d) * call.values(item, key_head, key, d);
  }
  const T weight = std::exp(dot * call.scale - problem.log_sum_exp(item, head, query));
  const T grad_score = weight * (grad_weight - delta);
  for (Index d = 0; d < call.value_dim(); ++d) {
    problem.grad_values(item, key_head, key, d) +=
        weight * problem.grad_output(item, head, query, d);
  }
  for (Index d = 0; d < call.head_dim(); ++d) {
    problem.grad_queries(item, head, query, d) +=
        call.scale * grad_score * call.keys(item, key_head, key, d);
    problem.grad_keys(item, key_head, key, d) +=
        call.scale * grad_score * call.queries(item, head, query, d);
  }
}

/// delta = Σ_d dO · O, less the gradient of the log-sum-exp: the derivative of P's denominator.
template <class T>
T reference_delta(const BackwardProblem<T>& problem, Index item, Index head, Index query) {
  T delta = 0;
  for (Index d = 0; d < problem.forward.value_dim(); ++d) {
    delta += problem.grad_output(item, head, query, d) * problem.output(item, head, query, d);
  }
  const auto& more = problem.grad_log_sum_exp;
  return more.given() ? delta - more.view()(item, head, query) : delta;
}

template <class T>
void write_zeros(const TensorView<T, 4>& view) {
  for (Index a = 0; a < view.extent(0); ++a) {
    for (Index b = 0; b < view.extent(1); ++b) {
      for (Index c = 0; c < view.extent(2); ++c) {
        for (Index d = 0; d < view.extent(3); ++d) view(a, b, c, d) = T{0};
      }
    }
  }
}

}  // namespace detail

/// The definition of the gradients of attention, as the formulas read: pair by pair of a query and
/// a key it sees. Same arguments as `attention_backward`, any floating-point type, plain loops; the
/// measure that the fused kernel is tested against. A masked pair is not looked at, and a query
/// with log-sum-exp −inf, which saw nothing, has gradient 0 and adds nothing to any other.
template <Viewable Q, Viewable K, Viewable V, MaskPolicy M, Viewable Out, Viewable Lse,
          Viewable GradOut, Viewable GradQ, Viewable GradK, Viewable GradV>
void reference_backward(const Q& queries, const K& keys, const V& values, const M& mask,
                        const Out& output, const Lse& log_sum_exp, const GradOut& grad_output,
                        GradQ&& grad_queries, GradK&& grad_keys, GradV&& grad_values,
                        const AttentionOptions<ValueOf<Q>>& options = {},
                        const GradientOptions<ValueOf<Q>>& gradients = {}) {
  using T = ValueOf<Q>;
  const auto problem =
      detail::checked_backward_problem<T>(queries, keys, values, output, log_sum_exp, grad_output,
                                          grad_queries, grad_keys, grad_values, options, gradients);
  const auto& call = problem.forward;
  detail::check_mask_fits(mask, call);
  detail::write_zeros(problem.grad_queries);
  detail::write_zeros(problem.grad_keys);
  detail::write_zeros(problem.grad_values);
  for (Index item = 0; item < call.batch(); ++item) {
    for (Index head = 0; head < call.heads(); ++head) {
      for (Index query = 0; query < call.query_count(); ++query) {
        if (problem.log_sum_exp(item, head, query) == -std::numeric_limits<T>::infinity()) continue;
        const T delta = detail::reference_delta(problem, item, head, query);
        const Index position = call.first_query_of(item) + query;
        for (Index key = 0; key < call.key_count(); ++key) {
          if (!mask.allows({item, head, position, key})) continue;
          detail::reference_pair(problem, item, head, query, key, delta);
        }
      }
    }
  }
}

}  // namespace heed
