// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/backward.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Queries, keys and values, (batch, tokens, heads · head_dim), as the kernel takes them: normed
/// and turned.
template <Scalar T>
struct AttentionInputs {
  Tensor<T, 3> queries, keys, values;
};

namespace detail {

/// The gradients of what the kernel took, before norms and turns, by that of its output; the
/// gradient of a score bias goes to grad_bias.
template <class Layer, Scalar T>
AttentionInputs<T> input_gradients(const Layer& layer, const typename Layer::Saved& saved,
                                   const Tensor<T, 3>& grad_context, Tensor<T, 2>& grad_bias) {
  const auto& in = saved.inputs;
  const auto like = [](const auto& x) { return Tensor<T, 3>::uninitialized(x.extents()); };
  AttentionInputs<T> grads{like(in.queries), like(in.keys), like(in.values)};
  attention_backward(
      layer.heads_of(in.queries), layer.heads_of(in.keys), layer.heads_of(in.values), *saved.mask,
      layer.heads_of(saved.context), lse_of_live_queries(saved.log_sum_exp, grad_context),
      layer.heads_of(grad_context), layer.heads_of(grads.queries), layer.heads_of(grads.keys),
      layer.heads_of(grads.values), layer.kernel_options(saved.noise),
      layer.score_bias.gradient_options(grad_bias));
  for (auto* rows : {&grads.queries, &grads.keys}) {
    if (layer.rotary) layer.rotary->undo(layer.heads_of(*rows), saved.positions);
  }
  return grads;
}

}  // namespace detail
}  // namespace heed
