// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/backward_problem.hpp>
#include <heed/attention/gradient_options.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/scalar.hpp>
#include <heed/masks/mask_ref.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// The fused kernel on a checked problem; in the library when HEED_COMPILED is set.
template <class T>
void run_backward(const BackwardProblem<T>& problem, const MaskRef& mask);

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
/// Any strides; memory is O(length), and at most 4 · threads arrays of (queries, head_dim) where
/// heads are fewer than threads. Bits do not depend on threads, batch or neighbors. Throws
/// ShapeError, before anything is written, for shapes, a mask or a scale that do not fit, for a
/// gradient that overlaps another tensor of the call or itself, and for a score_function without a
/// derivative.
/// Dao et al. 2022 (FlashAttention), algorithm 4; docs/04-backward.md derives it.
template <Viewable Q, Viewable K, Viewable V, MaskPolicy M, Viewable Out, Viewable Lse,
          Viewable GradOut, Viewable GradQ, Viewable GradK, Viewable GradV>
void attention_backward(const Q& queries, const K& keys, const V& values, const M& mask,
                        const Out& output, const Lse& log_sum_exp, const GradOut& grad_output,
                        GradQ&& grad_queries, GradK&& grad_keys, GradV&& grad_values,
                        const AttentionOptions<ValueOf<Q>>& options = {},
                        const GradientOptions<ValueOf<Q>>& gradients = {}) {
  using T = ValueOf<Q>;
  static_assert(Scalar<T>, "attention_backward computes in float or double");
  const auto problem =
      detail::checked_backward_problem<T>(queries, keys, values, output, log_sum_exp, grad_output,
                                          grad_queries, grad_keys, grad_values, options, gradients);
  detail::check_mask_fits(mask, problem.forward);
  detail::run_backward(problem, MaskRef(mask));
}

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/attention/backward.inl>
#endif
