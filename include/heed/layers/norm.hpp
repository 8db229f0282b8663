// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <tuple>

#include <heed/core/scalar.hpp>
#include <heed/layers/layer_norm.hpp>
#include <heed/layers/rms_norm.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

enum class NormKind { layer, rms };

struct NormOptions {
  NormKind kind = NormKind::layer;
  Index dim = 0;
  double epsilon = 1e-5;
  bool bias = true;  // of LayerNorm; RMSNorm has none
};

/// LayerNorm or RMSNorm, by choice at run time: what blocks and models hold.
template <Scalar T>
struct Norm {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = detail::NormSaved<T>;

  Norm() = default;
  explicit Norm(const NormOptions& options) {
    if (options.kind == NormKind::layer) {
      layer.emplace(LayerNormOptions{options.dim, options.epsilon, options.bias});
    } else {
      rms.emplace(RMSNormOptions{options.dim, options.epsilon});
    }
  }

  template <Viewable X>
  auto forward(const X& x) const {
    return layer ? layer->forward(x) : rms->forward(x);
  }
  template <Viewable X>
  auto forward(const X& x, Saved& saved) const {
    return layer ? layer->forward(x, saved) : rms->forward(x, saved);
  }
  template <Viewable G>
  auto backward(const G& grad, const Saved& saved, Norm& gradients) const {
    return layer ? layer->backward(grad, saved, *gradients.layer)
                 : rms->backward(grad, saved, *gradients.rms);
  }

  /// The names are those of the norm it is, without a level of their own.
  static auto members(auto& norm) {
    return std::tuple{member("", norm.layer), member("", norm.rms)};
  }

  std::optional<LayerNorm<T>> layer;
  std::optional<RMSNorm<T>> rms;
};

}  // namespace heed
