// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <tuple>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/detail/norm_rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

struct LayerNormOptions {
  Index dim = 0;
  double epsilon = 1e-5;
  bool bias = true;
};

/// y = (x − mean) / √(variance + ε) · weight + bias over the last axis of a tensor or view of any
/// rank. Ba, Kiros, Hinton 2016.
template <Scalar T>
struct LayerNorm {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = detail::NormSaved<T>;

  LayerNorm() = default;
  explicit LayerNorm(Index dim) : LayerNorm(LayerNormOptions{dim}) {}
  /// Weight 1, bias 0.
  explicit LayerNorm(const LayerNormOptions& options)
      : weight({options.dim}), epsilon(options.epsilon) {
    if (options.dim < 1)
      throw_invalid_argument("LayerNorm: dim ", options.dim, ", expected 1 or more");
    for (T& value : weight) value = 1;
    if (options.bias) bias.emplace(Extents<1>{options.dim});
  }

  template <Viewable X>
  auto forward(const X& x) const {
    return rows().forward(x, nullptr);
  }
  template <Viewable X>
  auto forward(const X& x, Saved& saved) const {
    return rows().forward(x, &saved);
  }
  template <Viewable G>
  auto backward(const G& grad, const Saved& saved, LayerNorm& gradients) const {
    return rows().backward(grad, saved, gradients.weight.data(),
                           bias ? gradients.bias->data() : nullptr);
  }

  static auto members(auto& layer) {
    return std::tuple{member("weight", layer.weight), member("bias", layer.bias)};
  }

  Tensor<T, 1> weight;
  std::optional<Tensor<T, 1>> bias;
  double epsilon = 1e-5;

 private:
  detail::NormRows<T> rows() const {
    return {"LayerNorm", weight, bias ? bias->data() : nullptr, static_cast<T>(epsilon), true};
  }
};

}  // namespace heed
