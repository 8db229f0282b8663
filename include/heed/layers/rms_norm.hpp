// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/detail/norm_rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

struct RMSNormOptions {
  Index dim = 0;
  double epsilon = 1e-6;
};

/// y = x / √(mean of x² + ε) · weight over the last axis of a tensor or view of any rank. Zhang and
/// Sennrich 2019.
template <Scalar T>
struct RMSNorm {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = detail::NormSaved<T>;

  RMSNorm() = default;
  explicit RMSNorm(Index dim) : RMSNorm(RMSNormOptions{dim}) {}
  /// Weight 1.
  explicit RMSNorm(const RMSNormOptions& options)
      : weight({options.dim}), epsilon(options.epsilon) {
    if (options.dim < 1)
      throw_invalid_argument("RMSNorm: dim ", options.dim, ", expected 1 or more");
    for (T& value : weight) value = 1;
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
  auto backward(const G& grad, const Saved& saved, RMSNorm& gradients) const {
    return rows().backward(grad, saved, gradients.weight.data(), nullptr);
  }

  static auto members(auto& layer) { return std::tuple{member("weight", layer.weight)}; }

  Tensor<T, 1> weight;
  double epsilon = 1e-6;

 private:
  detail::NormRows<T> rows() const {
    return {"RMSNorm", weight, nullptr, static_cast<T>(epsilon), false};
  }
};

}  // namespace heed
