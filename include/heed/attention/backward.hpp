// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/arguments.hpp>
#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/config.hpp>
#include <heed/core/scalar.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// attention_backward for bfloat16 tensors, widened to T.
template <class T, class M, class Lse, class GradQ, class GradK, class GradV>
void bfloat16_backward(const WidenedTensor<T>& queries, const WidenedTensor<T>& keys,
                       const WidenedTensor<T>& values, const M& mask,
                       const WidenedTensor<T>& output, const Lse& log_sum_exp,
                       const WidenedTensor<T>& grad_output, GradQ& grad_queries, GradK& grad_keys,
                       GradV& grad_values, const AttentionOptions<T>& options,
                       const GradientOptions<T>& gradients) {
  const auto args = checked_backward_args<T>(
      queries.view(), keys.view(), values.view(), output.view(), log_sum_exp, grad_output.view(),
      grad_queries, grad_keys, grad_values, options, gradients);
  for_each_written(args, [&](const char* name, const auto& written) {
    const char* call = "attention_backward";
    queries.check_no_alias(call, name, written, "queries");
    keys.check_no_alias(call, name, written, "keys");
    values.check_no_alias(call, name, written, "values");
    output.check_no_alias(call, name, written, "output");
    grad_output.check_no_alias(call, name, written, "grad_output");
  });
  const MaskRef reference(mask);
  check_mask_fits(reference, args.forward);
  run_backward(args, reference);
}

template <class Q>
using GradientsOf = GradientOptions<typename CallTypes<const Q>::Scalar>;

/// expect_call for attention_backward. With bfloat16 queries, the other tensors may be wider.
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

/// Fused gradients of attention: from `grad_output`, the gradient of a loss with respect to the
/// output, computes the gradients with respect to queries, keys and values. The scores are
/// recomputed tile by tile from queries, keys and the log-sum-exp; tiles in which the mask hides
/// everything are skipped.
///
/// Pass the queries, keys, values, mask and options of the forward call (options.log_sum_exp is
/// ignored), and the `output` and `log_sum_exp` it produced; log_sum_exp is (…, heads, queries).
/// Each gradient has the shape of its tensor and is overwritten; where query heads share a key
/// head, that head's gradients are sums over them. A query with log-sum-exp −inf, which saw no key,
/// has gradient 0 and contributes nothing to any other gradient, whatever its grad_output holds.
///
/// Every score modification in the options is differentiated through, and dropout drops the same
/// weights as in the forward call; `gradients` requests the gradients of biases, slopes and sinks.
///
/// bfloat16 queries, keys and values, with output and grad_output in bfloat16 or float, are copied
/// to float and computed in float; log_sum_exp, options and gradients are float. Where the forward
/// call rounded its weights to bfloat16, the gradients of a row are off by up to 2^-8 of their
/// value.
///
/// Any strides. Memory is O(length), plus at most 4 · threads arrays of (queries, head_dim) when
/// there are fewer heads than threads. The bits of the result do not depend on thread count, batch
/// or neighboring rows. Throws ShapeError, before the first write, for shapes, a mask or a scale
/// that do not fit, for a gradient that overlaps itself or another tensor of the call, and for a
/// score_function without a derivative. Dao et al. 2022 (FlashAttention), algorithm 4;
/// docs/04-backward.md derives it.
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
    detail::bfloat16_backward<float>(Wide(queries), Wide(keys), Wide(values), mask, Wide(output),
                                     log_sum_exp, Wide(grad_output), grad_queries, grad_keys,
                                     grad_values, options, gradients);
  } else {
    const auto args = detail::checked_backward_args<ValueOf<Q>>(
        queries, keys, values, output, log_sum_exp, grad_output, grad_queries, grad_keys,
        grad_values, options, gradients);
    const MaskRef reference(mask);
    detail::check_mask_fits(reference, args.forward);
    detail::run_backward(args, reference);
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
