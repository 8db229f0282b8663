// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/arguments.hpp>
#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/run.hpp>
#include <heed/attention/gradient_options.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/config.hpp>
#include <heed/core/scalar.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// attention_backward of bfloat16 tensors, widened.
template <class T, class M, class Lse, class GradQ, class GradK, class GradV>
void narrow_backward(const WidenedTensor<T>& queries, const WidenedTensor<T>& keys,
                     const WidenedTensor<T>& values, const M& mask, const WidenedTensor<T>& output,
                     const Lse& log_sum_exp, const WidenedTensor<T>& grad_output,
                     GradQ& grad_queries, GradK& grad_keys, GradV& grad_values,
                     const AttentionOptions<T>& options, const GradientOptions<T>& gradients) {
  const auto problem = checked_backward_problem<T>(
      queries.view(), keys.view(), values.view(), output.view(), log_sum_exp, grad_output.view(),
      grad_queries, grad_keys, grad_values, options, gradients);
  for_each_written(problem, [&](const char* name, const auto& written) {
    const char* call = "attention_backward";
    queries.check_apart(call, name, written, "queries");
    keys.check_apart(call, name, written, "keys");
    values.check_apart(call, name, written, "values");
    output.check_apart(call, name, written, "output");
    grad_output.check_apart(call, name, written, "grad_output");
  });
  check_mask_fits(mask, problem.forward);
  run_backward(problem, MaskRef(mask));
}

template <class Q>
using GradientsOf = GradientOptions<typename CallTypes<const Q>::Scalar>;

/// As expect_call, for attention_backward. What narrow tensors come with may be wider.
template <class Options, class M, class Q, class K, class V, class Out, class Lse, class GradOut,
          class... Gradients>
constexpr bool expect_backward() {
  if constexpr (expect_call<Options, M, Q, const K, const V>()) {
    if constexpr ((expect_output<std::remove_reference_t<Gradients>>() && ...)) {
      if constexpr (std::is_same_v<ValueOf<Q>, bfloat16>) {
        return true;
      } else if constexpr (expect_tensors<Q, const Out, const Lse, const GradOut,
                                          std::remove_reference_t<Gradients>...>()) {
        return expect_ranks<const Out, const GradOut, std::remove_reference_t<Gradients>...>();
      }
    }
  }
  return false;
}

}  // namespace detail

/// Gradients of attention, fused: what `grad_output`, the gradient of a loss with respect to the
/// output, means for queries, keys and values. The scores are computed again, tile by tile, from
/// queries, keys and the log-sum-exp; tiles that the mask lets nothing through are not computed.
///
/// Queries, keys, values, mask and options are those of the forward call (options.log_sum_exp is
/// not used), `output` and `log_sum_exp` are what it gave; log_sum_exp is (…, heads, queries). The
/// gradients have the shapes of what they belong to and are overwritten; where query heads share a
/// key head, its gradients are their sum. A query with log-sum-exp −inf, which saw no key, has
/// gradient 0 and adds nothing to any other, whatever its grad_output holds.
///
/// Whatever changes scores in the options is differentiated through, dropout with the weights that
/// the forward call dropped; `gradients` asks for the gradients of biases, slopes and sinks too.
///
/// bfloat16 queries, keys and values, with output and grad_output in bfloat16 or float, are
/// computed with as float, in copies: log_sum_exp, options and gradients are float. Where the
/// forward call rounded weights to bfloat16, so are the gradients': by 2^-8 of a row's.
///
/// Any strides; memory is O(length), and at most 4 · threads arrays of (queries, head_dim) where
/// heads are fewer than threads. Bits do not depend on threads, batch or neighbors. Throws
/// ShapeError, before anything is written, for shapes, a mask or a scale that do not fit, for a
/// gradient that overlaps another tensor of the call or itself, and for a score_function without a
/// derivative.
/// Dao et al. 2022 (FlashAttention), algorithm 4; docs/04-backward.md derives it.
///
/// Without a mask, as in the forward call, every query sees every key.
template <class Q, class K, class V, class M, class Out, class Lse, class GradOut, class GradQ,
          class GradK, detail::MeantAsResult GradV,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void attention_backward(const Q& queries, const K& keys, const V& values, const M& mask,
                        const Out& output, const Lse& log_sum_exp, const GradOut& grad_output,
                        GradQ&& grad_queries, GradK&& grad_keys, GradV&& grad_values,
                        const Options& options = {}, const detail::GradientsOf<Q>& gradients = {}) {
  if constexpr (!detail::expect_backward<Options, M, Q, K, V, Out, Lse, GradOut, GradQ, GradK,
                                         GradV>()) {
    return;
  } else if constexpr (std::is_same_v<ValueOf<Q>, bfloat16>) {
    using Wide = detail::WidenedTensor<float>;
    detail::narrow_backward<float>(Wide(queries), Wide(keys), Wide(values), mask, Wide(output),
                                   log_sum_exp, Wide(grad_output), grad_queries, grad_keys,
                                   grad_values, options, gradients);
  } else {
    const auto problem = detail::checked_backward_problem<ValueOf<Q>>(
        queries, keys, values, output, log_sum_exp, grad_output, grad_queries, grad_keys,
        grad_values, options, gradients);
    detail::check_mask_fits(mask, problem.forward);
    detail::run_backward(problem, MaskRef(mask));
  }
}
template <class Q, class K, class V, detail::TakesResult Out, class Lse, class GradOut, class GradQ,
          class GradK, class GradV, detail::IsOptions Options = detail::OptionsOf<Q>>
void attention_backward(const Q& queries, const K& keys, const V& values, const Out& output,
                        const Lse& log_sum_exp, const GradOut& grad_output, GradQ&& grad_queries,
                        GradK&& grad_keys, GradV&& grad_values, const Options& options = {},
                        const detail::GradientsOf<Q>& gradients = {}) {
  attention_backward(queries, keys, values, masks::Full{}, output, log_sum_exp, grad_output,
                     grad_queries, grad_keys, grad_values, options, gradients);
}

}  // namespace heed

#include <heed/attention/detail/definitions.hpp>
