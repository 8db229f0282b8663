// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/per_query_input.hpp>

namespace heed {

/// What goes into attention_backward beside the gradient of the output. Every default is "none".
template <class T>
struct GradientOptions {
  /// The gradient of the loss with respect to log_sum_exp, where the loss depends on it.
  PerQueryInput<T> grad_log_sum_exp = {};
};

}  // namespace heed
