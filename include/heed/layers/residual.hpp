// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/arithmetic.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// What surrounds a part of a block: x + dropout(part(norm(x))) with the norm before (GPT-2, Llama;
/// Xiong et al. 2020), or norm(x + dropout(part(x))) with the norm after (the original transformer,
/// BERT).
template <Scalar T>
struct Residual {
  struct Saved {
    typename Norm<T>::Saved norm;
    typename Dropout<T>::Saved dropout;
  };

  Residual() = default;
  Residual(const NormOptions& options, bool before, double dropout_share, Random& random)
      : norm(options), dropout(dropout_share, random), norm_before(before) {}

  /// `part` maps a tensor to one of the same extents.
  template <class Part>
  Tensor<T, 3> forward(Tensor<T, 3> x, const Part& part) const {
    if (norm_before) {
      x += part(norm.forward(x));
      return x;
    }
    auto sum = part(x);
    return norm.forward(sum += x);
  }
  template <class Part>
  Tensor<T, 3> forward(Tensor<T, 3> x, const Noise& noise, Saved& saved, const Part& part) const {
    if (norm_before) {
      x += dropout.forward(part(norm.forward(x, saved.norm)), noise, saved.dropout);
      return x;
    }
    auto sum = dropout.forward(part(x), noise, saved.dropout);
    return norm.forward(sum += x, saved.norm);
  }

  /// `part` maps the gradient of the part's output to that of its input.
  template <class Part>
  Tensor<T, 3> backward(Tensor<T, 3> grad, const Saved& saved, Residual& gradients,
                        const Part& part) const {
    if (norm_before) {
      grad += norm.backward(part(dropout.backward(grad, saved.dropout, gradients.dropout)),
                            saved.norm, gradients.norm);
      return grad;
    }
    grad = norm.backward(grad, saved.norm, gradients.norm);
    grad += part(dropout.backward(grad, saved.dropout, gradients.dropout));
    return grad;
  }

  static auto members(auto& layer) { return std::tuple{member("", layer.norm)}; }

  Norm<T> norm;
  Dropout<T> dropout;
  bool norm_before = true;
};

}  // namespace heed
