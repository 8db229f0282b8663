// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Further inputs and outputs of attention_backward, beside the gradients of output, queries, keys
/// and values. Every default is "none". An output is overwritten, has the shape of its
/// AttentionOptions counterpart, and is a sum where that value applied to several scores.
template <class T>
struct GradientOptions {
  /// In: the gradient of the loss with respect to log_sum_exp, if the loss depends on it: (batch,
  /// heads, queries), or rank 2 or 1 without the leading axes.
  OptionalView<const T, 3> grad_log_sum_exp = {};
  /// Out: the gradient of options.bias, with the bias's own extents: 1 for a broadcast axis.
  /// Computes the scores a second time.
  OptionalView<T, 4> grad_bias = {};
  /// Out: the gradients of options.relative_bias and alibi_slopes. Compute the scores a second
  /// time.
  TensorView<T, 2> grad_relative_bias = {};
  std::span<T> grad_alibi_slopes = {};
  /// Out: the gradient of options.sinks.
  std::span<T> grad_sinks = {};
};

}  // namespace heed
