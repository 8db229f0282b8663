// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/simd/norm_kernels.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed::detail {

/// What norms keep for backward: rows before weight and bias, and what they were multiplied with.
template <Scalar T>
struct NormSaved {
  Tensor<T, 2> normalized;  // (rows, width)
  Tensor<T, 1> factors;
};

/// Rows, those of a tensor or view of any rank, brought to mean 0 (if centered) and mean square 1,
/// then weight and bias: what LayerNorm and RMSNorm have in common.
template <Scalar T>
class NormRows {
 public:
  NormRows(const char* name, const Tensor<T, 1>& weight, const T* bias, T epsilon, bool centered)
      : name_(name), run_{weight.extent(0), weight.data(), bias, epsilon, centered} {}

  template <Viewable X>
  auto forward(const X& x, NormSaved<T>* saved) const {
    const Index width = run_.width;
    const auto extents = view_of(x).extents();
    if (extents.back() != width) {
      throw_shape_error(name_, ": x is ", extents, ", expected ", width, " as the last extent");
    }
    const Rows<T> from(x);
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
    for_row_runs(rows, width, [&](Index first, Index last) {
      const Index at = first * width;
      kernels_.forward(run_, last - first, values + at, normalized ? normalized + at : nullptr,
                       factors ? factors + first : nullptr, y.data() + at);
    });
    return y;
  }

  /// The gradient of x; adds those of weight and bias, which is null where there is none.
  template <Viewable G>
  auto backward(const G& grad, const NormSaved<T>& saved, T* grad_weight, T* grad_bias) const {
    const Index width = run_.width;
    const Rows<T> grads(grad);
    if (grads.view().extents() != saved.normalized.extents()) {
      throw_shape_error(name_, ": a gradient of ", view_of(grad).extents(), " where forward saw ",
                        saved.normalized.extents());
    }
    const T* values = grads.view().data_handle();
    auto grad_x = Tensor<T, ViewOf<const G>::rank()>::uninitialized(view_of(grad).extents());
    const auto sums =
        sum_row_runs<T>(grads.view().extent(0), 2 * width, [&](Index first, Index last, T* sum) {
          const Index at = first * width;
          kernels_.backward(
              run_, last - first,
              {values + at, saved.normalized.data() + at, saved.factors.data() + first,
               grad_x.data() + at, sum, grad_bias ? sum + width : nullptr});
        });
    const auto& rows = simd::row_kernels<T>();
    rows.add(sums.data(), grad_weight, width);
    if (grad_bias != nullptr) rows.add(sums.data() + width, grad_bias, width);
    return grad_x;
  }

 private:
  const char* name_;
  simd::NormRun<T> run_;
  const simd::NormKernels<T>& kernels_ = simd::norm_kernels<T>();
};

}  // namespace heed::detail
