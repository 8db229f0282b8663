// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <heed/core/scalar.hpp>
#include <heed/layers/detail/live_rows.hpp>
#include <heed/layers/detail/row_work.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// relu: max(0, x); gelu: x Φ(x), exact; gelu_tanh: its approximation; silu: x / (1 + e⁻ˣ).
using ActivationKind = simd::Activation;

/// One function for every number: ReLU, GELU in both forms, SiLU. No parameters.
template <Scalar T>
struct Activation {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tensor<T, 3> slopes;  // the derivative at each input
  };

  Activation() = default;
  explicit Activation(ActivationKind which) : kind(which) {}

  Output forward(Input x) const {
    activate(x, nullptr);
    return x;
  }
  Output forward(Input x, Saved& saved) const {
    saved.slopes = Input::uninitialized(x.extents());
    activate(x, saved.slopes.data());
    return x;
  }
  Input backward(Output grad, const Saved& saved, Activation&) const {
    detail::multiply_live(grad, saved.slopes, grad);
    return grad;
  }

  static auto members(auto&) { return std::tuple{}; }

  ActivationKind kind = ActivationKind::relu;

 private:
  void activate(Tensor<T, 3>& x, T* slopes) const {
    const Index width = x.extent(2);
    detail::for_row_runs(x.extent(0) * x.extent(1), 8 * width, [&](Index first, Index last) {
      T* at = x.data() + first * width;
      simd::row_kernels<T>().activate(kind, at, at, slopes ? slopes + first * width : nullptr,
                                      (last - first) * width);
    });
  }
};

}  // namespace heed
