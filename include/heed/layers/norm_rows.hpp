// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/live_rows.hpp>
#include <heed/layers/row_work.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

/// What norms keep for backward: rows before weight and bias, and what they were multiplied with.
template <Scalar T>
struct NormSaved {
  Tensor<T, 3> normalized;
  Tensor<T, 1> factors;
};

/// Rows brought to mean 0 (if centered) and mean square 1, then weight and bias: what LayerNorm and
/// RMSNorm have in common.
template <Scalar T>
class NormRows {
 public:
  NormRows(const char* name, const Tensor<T, 1>& weight, const T* bias, T epsilon, bool centered)
      : name_(name),
        weight_(weight.data()),
        bias_(bias),
        width_(weight.extent(0)),
        epsilon_(epsilon),
        centered_(centered) {}

  Tensor<T, 3> forward(const Tensor<T, 3>& x, NormSaved<T>* saved) const {
    if (x.extent(2) != width_) {
      throw_shape_error(name_, ": x is ", x.extents(), ", expected ", width_,
                        " as the last extent");
    }
    const Index rows = x.extent(0) * x.extent(1);
    auto y = Tensor<T, 3>::uninitialized(x.extents());
    if (saved != nullptr) {
      saved->normalized = Tensor<T, 3>::uninitialized(x.extents());
      saved->factors = Tensor<T, 1>({rows});
    }
    for_row_runs(rows, width_, [&](Index first, Index last) {
      for (Index row = first; row < last; ++row) {
        const Index at = row * width_;
        T* normalized = saved != nullptr ? saved->normalized.data() + at : y.data() + at;
        const T factor = normalize(x.data() + at, normalized);
        if (saved != nullptr) saved->factors[row] = factor;
        kernels_.multiply(normalized, weight_, y.data() + at, width_);
        if (bias_ != nullptr) kernels_.add(bias_, y.data() + at, width_);
      }
    });
    return y;
  }

  /// With n = (x − mean) · factor and h = grad · weight:
  /// grad of x = factor · (h − mean(h) − n · mean(h · n)), without mean(h) where not centered.
  Tensor<T, 3> backward(const Tensor<T, 3>& grad, const NormSaved<T>& saved, T* grad_weight,
                        T* grad_bias) const {
    const Index rows = grad.extent(0) * grad.extent(1);
    const auto count = static_cast<T>(width_);
    auto grad_x = Tensor<T, 3>::uninitialized(grad.extents());
    for_row_runs(rows, width_, [&](Index first, Index last) {
      for (Index row = first; row < last; ++row) {
        const Index at = row * width_;
        const T* normalized = saved.normalized.data() + at;
        T* out = grad_x.data() + at;
        if (all_zero(grad.data() + at, width_)) {
          std::fill_n(out, width_, T{0});
          continue;
        }
        kernels_.multiply(grad.data() + at, weight_, out, width_);
        const T mean = centered_ ? kernels_.sum(out, width_) / count : T{0};
        const T slope = kernels_.dot(out, normalized, width_) / count;
        kernels_.normalize(out, mean, slope, normalized, saved.factors[row], out, width_);
      }
    });
    sum_row_runs(rows, width_, grad_weight, [&](Index first, Index last, T* sum) {
      for (Index at = first * width_; at < last * width_; at += width_) {
        if (all_zero(grad.data() + at, width_)) continue;
        kernels_.multiply_add(grad.data() + at, saved.normalized.data() + at, sum, width_);
      }
    });
    if (grad_bias == nullptr) return grad_x;
    sum_row_runs(rows, width_, grad_bias, [&](Index first, Index last, T* sum) {
      for (Index at = first * width_; at < last * width_; at += width_) {
        kernels_.add(grad.data() + at, sum, width_);
      }
    });
    return grad_x;
  }

 private:
  T normalize(const T* x, T* out) const {
    const auto count = static_cast<T>(width_);
    const T mean = centered_ ? kernels_.sum(x, width_) / count : T{0};
    const T square = kernels_.squares(x, mean, width_) / count;
    const T factor = T{1} / std::sqrt(square + epsilon_);
    kernels_.normalize(x, mean, T{0}, nullptr, factor, out, width_);
    return factor;
  }

  const char* name_;
  const T* weight_;
  const T* bias_;
  Index width_;
  T epsilon_;
  bool centered_;
  const simd::RowKernels<T>& kernels_ = simd::row_kernels<T>();
};

}  // namespace heed::detail
