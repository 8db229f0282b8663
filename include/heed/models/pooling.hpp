// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

namespace detail {

inline void check_lengths(std::span<const Index> lengths, Index batch, Index tokens) {
  if (static_cast<Index>(lengths.size()) != batch) {
    throw_shape_error("mean_pool: ", lengths.size(), " lengths for a batch of ", batch);
  }
  for (const Index length : lengths) {
    if (length < 0 || length > tokens) {
      throw_shape_error("mean_pool: length ", length, ", expected 0 to ", tokens);
    }
  }
}

}  // namespace detail

/// The mean of the first lengths[b] tokens of every item: (batch, tokens, dim) to (batch, dim); 0
/// for an item without tokens. What stands behind the length is not looked at.
template <Scalar T>
Tensor<T, 2> mean_pool(const Tensor<T, 3>& x, std::span<const Index> lengths) {
  detail::check_lengths(lengths, x.extent(0), x.extent(1));
  const Index dim = x.extent(2);
  Tensor<T, 2> means({x.extent(0), dim});
  for (Index item = 0; item < x.extent(0); ++item) {
    const Index length = lengths[static_cast<std::size_t>(item)];
    T* mean = means.data() + item * dim;
    for (Index token = 0; token < length; ++token) {
      simd::row_kernels<T>().add(x.data() + (item * x.extent(1) + token) * dim, mean, dim);
    }
    for (Index d = 0; d < dim && length > 0; ++d) mean[d] /= static_cast<T>(length);
  }
  return means;
}

/// The gradient of mean_pool's input of `tokens` tokens.
template <Scalar T>
Tensor<T, 3> mean_pool_backward(const Tensor<T, 2>& grad, std::span<const Index> lengths,
                                Index tokens) {
  detail::check_lengths(lengths, grad.extent(0), tokens);
  Tensor<T, 3> grad_x({grad.extent(0), tokens, grad.extent(1)});
  for (Index item = 0; item < grad.extent(0); ++item) {
    const Index length = lengths[static_cast<std::size_t>(item)];
    for (Index token = 0; token < length; ++token) {
      for (Index d = 0; d < grad.extent(1); ++d) {
        grad_x(item, token, d) = grad(item, d) / static_cast<T>(length);
      }
    }
  }
  return grad_x;
}

}  // namespace heed
