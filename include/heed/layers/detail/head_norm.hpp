// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <utility>

#include <heed/core/scalar.hpp>
#include <heed/layers/norm.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

/// (batch, tokens, heads · head_dim) with a row for each head, as norms of queries and keys see it.
inline Extents<3> head_rows(const Extents<3>& extents, Index head_dim) {
  return {extents[0], extents[1] * (extents[2] / head_dim), head_dim};
}

/// x with each head normed for itself, or as it is without a norm. Dehghani et al. 2023.
template <Scalar T>
Tensor<T, 3> head_norm(const std::optional<Norm<T>>& norm, Index head_dim, Tensor<T, 3> x,
                       typename Norm<T>::Saved* saved = nullptr) {
  if (!norm) return x;
  const Extents<3> extents = x.extents();
  const auto rows = std::move(x).reshaped(head_rows(extents, head_dim));
  return (saved ? norm->forward(rows, *saved) : norm->forward(rows)).reshaped(extents);
}

/// The gradient by x; that of the norm's parameters is added to `gradients`.
template <Scalar T>
Tensor<T, 3> head_norm_backward(const std::optional<Norm<T>>& norm, Index head_dim,
                                Tensor<T, 3> grad, const typename Norm<T>::Saved& saved,
                                std::optional<Norm<T>>& gradients) {
  if (!norm) return grad;
  const Extents<3> extents = grad.extents();
  const auto rows = std::move(grad).reshaped(head_rows(extents, head_dim));
  return norm->backward(rows, saved, *gradients).reshaped(extents);
}

}  // namespace heed::detail
