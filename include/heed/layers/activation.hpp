// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <heed/core/scalar.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// relu: max(0, x); gelu: x Φ(x), exact; gelu_tanh: its approximation; silu: x / (1 + e⁻ˣ).
using ActivationKind = simd::Activation;

/// One function for every number of a tensor or view of any rank: ReLU, GELU in both forms, SiLU.
/// No parameters.
template <Scalar T>
struct Activation {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tensor<T, 2> slopes;  // (rows, width): the derivative at each input
  };

  Activation() = default;
  explicit Activation(ActivationKind which) : kind(which) {}

  template <class X>
  auto forward(X&& x) const {
    auto y = detail::owned<T>(std::forward<X>(x));
    activate(detail::as_rows(y), nullptr);
    return y;
  }
  template <class X>
  auto forward(X&& x, Saved& saved) const {
    auto y = detail::owned<T>(std::forward<X>(x));
    saved.slopes = Tensor<T, 2>::uninitialized(detail::row_extents(y.extents()));
    activate(detail::as_rows(y), saved.slopes.data());
    return y;
  }
  template <class G>
  auto backward(G&& grad, const Saved& saved, Activation&) const {
    auto grad_x = detail::owned<T>(std::forward<G>(grad));
    detail::multiply_live(grad_x, saved.slopes, grad_x);
    return grad_x;
  }

  static auto members(auto&) { return std::tuple{}; }

  ActivationKind kind = ActivationKind::relu;

 private:
  void activate(const TensorView<T, 2>& x, T* slopes) const {
    const Index width = x.extent(1);
    detail::for_row_runs(x.extent(0), 8 * width, [&](Index first, Index last) {
      T* at = x.data_handle() + first * width;
      simd::row_kernels<T>().activate(kind, at, at, slopes ? slopes + first * width : nullptr,
                                      (last - first) * width);
    });
  }
};

}  // namespace heed
