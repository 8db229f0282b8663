// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

enum class NormKind { layer, rms };

/// `epsilon` is that of layer norms as GPT-2 has them, for both kinds; RMSNorm has that of Llama.
struct NormOptions {
  NormKind kind = NormKind::layer;
  Index dim = 0;
  double epsilon = 1e-5;
  bool bias = true;  // of layer norms; RMS norms have none
};

/// Layer norm, y = (x − mean) / √(variance + ε) · weight + bias (Ba, Kiros, Hinton 2016), or RMS
/// norm, y = x / √(mean of x² + ε) · weight (Zhang and Sennrich 2019), along the last axis of a
/// tensor or view of any rank. The kind is chosen at run time; LayerNorm and RMSNorm fix it, and
/// RMSNorm has a default ε of its own.
template <ModelScalar T>
struct Norm {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tensor<T, 2> normalized;  // (rows, dim): y before weight and bias
    Tensor<T, 1> factors;     // one a row: 1 / √(… + ε)
  };

  Norm() = default;
  /// Weight 1, bias 0. Throws InvalidArgument for a dim below 1, and for an epsilon that is below 0
  /// or that T does not hold.
  explicit Norm(const NormOptions& options) : epsilon(options.epsilon), kind(options.kind) {
    if (options.dim < 1 || !(options.epsilon >= 0) ||
        !std::isfinite(static_cast<T>(options.epsilon))) {
      throw_invalid_argument(name(), ": dim ", options.dim, ", expected 1 or more; epsilon ",
                             options.epsilon, ", expected 0 or more, and finite");
    }
    weight = Tensor<T, 1>({options.dim});
    for (T& value : weight) value = 1;
    if (options.bias && kind == NormKind::layer) bias.emplace(Extents<1>{options.dim});
  }

  /// Throws ShapeError where the last extent is not dim.
  template <Viewable X>
  auto forward(const X& x) const {
    return normed(x, nullptr);
  }
  template <Viewable X>
  auto forward(const X& x, Saved& saved) const {
    return normed(x, &saved);
  }
  template <Viewable G>
  auto backward(const G& grad, const Saved& saved, Norm& gradients) const {
    return gradient_of_input(grad, saved, gradients, nullptr);
  }
  /// The sum of `residual` and the gradient: that of x where x also goes past the norm.
  auto backward(const Tensor<T, 3>& grad, const Saved& saved, Norm& gradients,
                const Tensor<T, 3>& residual) const {
    detail::check_gradient(name(), residual.extents(), grad.extents());
    return gradient_of_input(grad, saved, gradients, residual.data());
  }

  /// Throws ShapeError unless `saved` can be from a forward pass over so many rows.
  void check_saved(const Saved& saved, Index rows) const {
    detail::check_saved(name(), saved.normalized.extents() == Extents<2>{rows, weight.extent(0)} &&
                                    saved.factors.extent(0) == rows);
  }

  static auto members(auto& norm) {
    return Members{member("weight", norm.weight), member("bias", norm.bias)};
  }

  Tensor<T, 1> weight;
  std::optional<Tensor<T, 1>> bias;
  double epsilon = 1e-5;
  NormKind kind = NormKind::layer;

 private:
  template <Viewable G>
  auto gradient_of_input(const G& grad, const Saved& saved, Norm& gradients,
                         const T* residual) const {
    const Index width = weight.extent(0);
    const detail::Rows<T> grads(grad);
    const Index count = grads.view().extent(0);
    detail::check_gradients(*this, gradients);
    detail::check_gradient(name(), grads.view().extents(), saved.normalized.extents());
    check_saved(saved, count);
    const T* values = grads.view().data_handle();
    auto grad_x = Tensor<T, ViewOf<const G>::rank()>::uninitialized(view_of(grad).extents());
    const auto run = kernel_run();
    const auto sums =
        detail::sum_row_runs<T>(count, 2 * width, [&](Index first, Index last, T* sum) {
          const Index at = first * width;
          simd::norm_kernels<T>().backward(
              run, last - first,
              {values + at, saved.normalized.data() + at, saved.factors.data() + first,
               grad_x.data() + at, sum, bias ? sum + width : nullptr,
               residual ? residual + at : nullptr});
        });
    const auto& rows = simd::row_kernels<T>();
    rows.add(sums.data(), gradients.weight.data(), width);
    if (bias) rows.add(sums.data() + width, gradients.bias->data(), width);
    return grad_x;
  }
  const char* name() const { return kind == NormKind::layer ? "LayerNorm" : "RMSNorm"; }
  simd::NormRun<T> kernel_run() const {
    return {weight.extent(0), weight.data(), bias ? bias->data() : nullptr, static_cast<T>(epsilon),
            kind == NormKind::layer};
  }
  template <Viewable X>
  auto normed(const X& x, Saved* saved) const {
    const Index width = weight.extent(0);
    const auto extents = view_of(x).extents();
    if (extents.back() != width) {
      throw_shape_error(name(), ": x is ", extents, ", expected ", width, " as the last extent");
    }
    if (bias && bias->extent(0) != width) {
      throw_shape_error(name(), ": the bias is ", bias->extents(), ", the weight ", width);
    }
    const detail::Rows<T> from(x);
    const T* values = from.view().data_handle();
    const Index rows = from.view().extent(0);
    auto y = Tensor<T, ViewOf<const X>::rank()>::uninitialized(extents);
    T *normalized = nullptr, *factors = nullptr;
    if (saved != nullptr) {
      saved->normalized = Tensor<T, 2>::uninitialized({rows, width});
      saved->factors = Tensor<T, 1>({rows});
      normalized = saved->normalized.data();
      factors = saved->factors.data();
    }
    const auto run = kernel_run();
    detail::for_row_runs(rows, width, [&](Index first, Index last) {
      const Index at = first * width;
      simd::norm_kernels<T>().forward(run, last - first, values + at,
                                      normalized ? normalized + at : nullptr,
                                      factors ? factors + first : nullptr, y.data() + at);
    });
    return y;
  }
};

/// A Norm that is a layer norm: `LayerNorm<float> norm(dim)`.
template <ModelScalar T>
struct LayerNorm : Norm<T> {
  LayerNorm() = default;
  explicit LayerNorm(Index dim, double eps = 1e-5, bool has_bias = true)
      : Norm<T>({NormKind::layer, dim, eps, has_bias}) {}
};

/// A Norm that is an RMS norm: `RMSNorm<float> norm(dim)`. Its default epsilon is Llama's, a tenth
/// of that of NormOptions.
template <ModelScalar T>
struct RMSNorm : Norm<T> {
  RMSNorm() { this->kind = NormKind::rms; }
  explicit RMSNorm(Index dim, double eps = 1e-6) : Norm<T>({NormKind::rms, dim, eps}) {}
};

HEED_LINKED_LAYER(Norm)
HEED_LINKED_LAYER(LayerNorm)
HEED_LINKED_LAYER(RMSNorm)

}  // namespace heed
