// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// attention_backward for bfloat16 tensors in T = float: in products of pairs or tiles, which take
/// grad_output rounded, or else of widened numbers.
template <class T, class Q, class K, class V, class M, class Out, class Lse, class GradOut,
          class GradQ, class GradK, class GradV>
void bfloat16_backward(const Q& queries, const K& keys, const V& values, const M& mask,
                       const Out& output, const Lse& log_sum_exp, const GradOut& grad_output,
                       GradQ& grad_queries, GradK& grad_keys, GradV& grad_values,
                       const AttentionOptions<T>& options, const GradientOptions<T>& gradients) {
  Tensor<T, 4> wide_output, wide_gradient;
  auto args = checked_backward_args<T>(queries, keys, values, widened(output, wide_output),
                                       log_sum_exp, widened(grad_output, wide_gradient),
                                       grad_queries, grad_keys, grad_values, options, gradients);
  for_each_written(args, [&](const char* name, const auto& written) {
    const auto check_separate = [&](const char* other, const auto& given) {
      if (!overlaps(written, given)) return;
      throw_shape_error("attention_backward: ", name, " overlaps ", other);
    };
    check_separate("output", view_of(output));
    check_separate("grad_output", view_of(grad_output));
  });
  const MaskRef reference(mask);
  const auto& call = args.forward;
  check_mask_fits(reference, call);
  if (multiplies_pairs(call)) {
    args.pairs = simd::pair_backward_kernel<T>();
    args.narrow_grad_output = Operand<T>(as_rank_4(view_of(grad_output)));
    if constexpr (!std::is_same_v<ValueOf<GradOut>, bfloat16>) {
      args.narrow_grad_output =
          args.narrow_grad_output.rounded(simd::bfloat16_kernels<T>(), call.pairs);
    }
  }
  run_backward(args, reference);
}

template <class Q>
using GradientsOf = GradientOptions<typename CallTypes<const Q>::Scalar>;

template <class X>
inline constexpr bool float_or_bfloat16 =
    std::is_same_v<ValueOf<X>, float> || std::is_same_v<ValueOf<X>, bfloat16>;

/// The types beside bfloat16 queries, keys and values.
template <class Out, class Lse, class GradOut, class... Gradients>
constexpr bool expect_beside_bfloat16() {
  constexpr bool wide = (std::is_same_v<ValueOf<Gradients>, float> && ...);
  constexpr bool results = float_or_bfloat16<Out> && float_or_bfloat16<GradOut>;
  static_assert(wide, "the gradients of bfloat16 tensors are float: Tensor<float, …>");
  static_assert(!wide || results,
                "where queries are bfloat16, output and grad_output are bfloat16 or float");
  static_assert(!wide || !results || std::is_same_v<ValueOf<Lse>, float>,
                "where queries are bfloat16, log_sum_exp is float");
  return wide && results && std::is_same_v<ValueOf<Lse>, float>;
}

/// expect_call for attention_backward. With bfloat16 queries, the other tensors may be wider.
template <class Options, class M, class Q, class K, class V, class Out, class Lse, class GradOut,
          class... Gradients>
constexpr bool expect_backward() {
  if constexpr (!LikeMask<M> && (MaskPolicy<Out> || MaskPolicy<Lse> || MaskPolicy<GradOut>)) {
    static_assert(never<M>,
                  "the mask comes behind the values: attention_backward(queries, keys, values, "
                  "mask, output, log_sum_exp, grad_output, grad_queries, grad_keys, grad_values)");
  } else if constexpr (expect_call<Options, M, Q, const K, const V>()) {
    if constexpr ((expect_output<std::remove_reference_t<Gradients>>() && ...)) {
      if constexpr (std::is_same_v<ValueOf<Q>, bfloat16>) {
        if constexpr ((expect_tensors<const Out>() && ... &&
                       expect_tensors<std::remove_reference_t<Gradients>>()) &&
                      expect_tensors<const Lse>() && expect_tensors<const GradOut>()) {
          if constexpr (expect_beside_bfloat16<Out, Lse, GradOut,
                                               std::remove_reference_t<Gradients>...>()) {
            return expect_ranks<const Out, const GradOut, std::remove_reference_t<Gradients>...>();
          }
        }
      } else if constexpr (expect_tensors<Q, const Out, const Lse, const GradOut,
                                          std::remove_reference_t<Gradients>...>()) {
        return expect_ranks<const Out, const GradOut, std::remove_reference_t<Gradients>...>();
      }
    }
  }
  return false;
}

template <class Q, class Lse, class GradOut>
constexpr bool ranks_of_forward() {
  constexpr std::size_t rank = ViewOf<const Q>::rank(), lse = ViewOf<const Lse>::rank();
  return ViewOf<const GradOut>::rank() == rank && (EigenVector<Lse> || lse + 1 == rank);
}
/// The tensors of a forward call and a gradient of its output, by their ranks.
template <class Q, class K, class V, class Out, class Lse, class GradOut>
concept TensorsOfForward = Viewable<const Q> && Viewable<const K> && Viewable<const V> &&
    Viewable<const Out> && Viewable<const Lse> && Viewable<const GradOut> &&
    ranks_of_forward<Q, Lse, GradOut>();

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
/// bfloat16 queries, keys and values, with output and grad_output in bfloat16 or float, have float
/// gradients; log_sum_exp and options are float. Where the forward call multiplies pairs or tiles,
/// weights, score gradients and grad_output are rounded to bfloat16; elsewhere all is computed in
/// float. The gradients of a row are off by a few 2^-8 of their value.
///
/// Any strides. Memory is O(length), plus at most 4 · threads arrays of (queries, head_dim) where
/// several threads share more than 192 keys. The bits of the result do not depend on thread count,
/// batch or neighboring rows. Throws, before the first write, ShapeError for shapes or a mask that
/// do not fit, for a gradient that overlaps itself or another tensor of the call and for a gradient
/// of an option that is not given; InvalidArgument for options out of range, such as a scale that
/// is NaN, and for a score_function without a derivative. Dao et al. 2022 (FlashAttention),
/// algorithm 4; docs/04-backward.md derives it.
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
    detail::bfloat16_backward<float>(queries, keys, values, mask, output, log_sum_exp, grad_output,
                                     grad_queries, grad_keys, grad_values, options, gradients);
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

/// The gradients of attention's three inputs.
template <class Result>
struct AttentionGradients {
  Result queries, keys, values;
};
template <class Result>
AttentionGradients(Result, Result, Result) -> AttentionGradients<Result>;

namespace detail {

/// A gradient of queries, keys or values, for Eigen queries an Eigen matrix.
template <class Q, std::size_t Rank>
auto new_gradient(const Extents<Rank>& extents) {
  if constexpr (requires { ViewAdapter<Q>::result(extents); }) {
    return ViewAdapter<Q>::result(extents);
  } else {
    return Tensor<ComputedIn<ValueOf<Q>>, Rank>::uninitialized(extents);
  }
}

}  // namespace detail

/// The same, returning new tensors: `const auto [grad_q, grad_k, grad_v] = attention_backward(…)`.
/// Those of bfloat16 tensors are float; Eigen queries give Eigen matrices.
template <class Q, class K, class V, detail::MeantAsMask M, class Out, class Lse, class GradOut,
          detail::IsOptions Options = detail::OptionsOf<Q>>
requires detail::TensorsOfForward<Q, K, V, Out, Lse, GradOut>
auto attention_backward(const Q& queries, const K& keys, const V& values, const M& mask,
                        const Out& output, const Lse& log_sum_exp, const GradOut& grad_output,
                        const Options& options = {},
                        const detail::GradientsOf<Q>& gradients_of_options = {}) {
  AttentionGradients gradients{detail::new_gradient<Q>(view_of(queries).extents()),
                               detail::new_gradient<Q>(view_of(keys).extents()),
                               detail::new_gradient<Q>(view_of(values).extents())};
  attention_backward(queries, keys, values, mask, output, log_sum_exp, grad_output,
                     gradients.queries, gradients.keys, gradients.values, options,
                     gradients_of_options);
  return gradients;
}
template <class Q, class K, class V, detail::TakesResult Out, class Lse, class GradOut,
          detail::IsOptions Options = detail::OptionsOf<Q>>
requires detail::TensorsOfForward<Q, K, V, Out, Lse, GradOut>
auto attention_backward(const Q& queries, const K& keys, const V& values, const Out& output,
                        const Lse& log_sum_exp, const GradOut& grad_output,
                        const Options& options = {},
                        const detail::GradientsOf<Q>& gradients_of_options = {}) {
  return attention_backward(queries, keys, values, masks::Full{}, output, log_sum_exp, grad_output,
                            options, gradients_of_options);
}

namespace detail {
/// What is given to attention_backward without its output or log_sum_exp: too few tensors, or a
/// mask where a call without one has its output.
template <class Fourth, class... Rest>
concept TooFewForBackward = sizeof...(Rest) < 5 || (sizeof...(Rest) == 5 && !TakesResult<Fourth>);
}  // namespace detail

// What leaves out the results of the forward call does not compile.
template <class Q, class K, class V, class Fourth, class... Rest>
requires detail::TooFewForBackward<Fourth, Rest...>
auto attention_backward(const Q&, const K&, const V&, const Fourth&, const Rest&...) {
  static_assert(!detail::expect_evaluated<Q, K, V, Fourth, Rest...>() || detail::never<Q>,
                "attention_backward(queries, keys, values, mask, output, log_sum_exp, grad_output, "
                "grad_queries, grad_keys, grad_values): output and log_sum_exp are the results of "
                "attention(queries, keys, values, mask, output, {.log_sum_exp = log_sum_exp})");
  return AttentionGradients<detail::ResultOf<Q>>();
}

}  // namespace heed

#include <heed/definitions/attention.hpp>
