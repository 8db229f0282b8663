// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <heed/core/scalar.hpp>
#include <heed/layers/live_rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/row_work.hpp>
#include <heed/simd/row_kernels.hpp>
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
    Input input;
  };

  Activation() = default;
  explicit Activation(ActivationKind which) : kind(which) {}

  Output forward(const Input& x) const {
    auto y = Output::uninitialized(x.extents());
    const Index width = x.extent(2);
    detail::for_row_runs(x.extent(0) * x.extent(1), 8 * width, [&](Index first, Index last) {
      simd::row_kernels<T>().activate(kind, x.data() + first * width, y.data() + first * width,
                                      (last - first) * width);
    });
    return y;
  }
  Output forward(Input x, Saved& saved) const {
    Output y = forward(x);
    saved.input = std::move(x);
    return y;
  }
  Input backward(const Output& grad, const Saved& saved, Activation&) const {
    auto grad_x = Input::uninitialized(grad.extents());
    const Index width = grad.extent(2);
    detail::for_row_runs(grad.extent(0) * grad.extent(1), 8 * width, [&](Index first, Index last) {
      const Index at = first * width;
      simd::row_kernels<T>().activate_gradient(kind, saved.input.data() + at, grad.data() + at,
                                               grad_x.data() + at, (last - first) * width);
      detail::clear_dead_rows(grad.data() + at, grad_x.data() + at, last - first, width);
    });
    return grad_x;
  }

  static auto members(auto&) { return std::tuple{}; }

  ActivationKind kind = ActivationKind::relu;
};

}  // namespace heed
