// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// What goes into attention_backward and comes out of it beside the gradients of output, queries,
/// keys and values. Every default is "none". What comes out is overwritten, has the shape of what
/// it belongs to in AttentionOptions, and is summed where that held for several scores.
template <class T>
struct GradientOptions {
  /// In: the gradient of the loss with respect to log_sum_exp, where the loss depends on it:
  /// (batch, heads, queries), or rank 2 or 1 without the leading axes.
  OptionalView<const T, 3> grad_log_sum_exp = {};
  /// Out: the gradient of options.bias, of the bias's own extents: 1 where one number held for all.
  /// Computes the scores once more.
  OptionalView<T, 4> grad_bias = {};
  /// Out: the gradients of options.relative_bias and alibi_slopes. Compute the scores once more.
  TensorView<T, 2> grad_relative_bias = {};
  std::span<T> grad_alibi_slopes = {};
  /// Out: the gradient of options.sinks.
  std::span<T> grad_sinks = {};
};

}  // namespace heed
