// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/scalar.hpp>
#include <heed/simd/product_kernels.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A matrix laid out once for many products with it on the right, as weights are in inference: one
/// row times it reads its memory straight through. A copy; it does not follow the matrix it was
/// made from. Same bits in every product as that matrix.
template <Scalar T>
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// Packs `matrix`, (rows, columns), any strides.
  template <Viewable X>
  explicit PackedMatrix(const X& matrix) {
    const TensorView<const T, 2> view = view_of(matrix);
    rows_ = view.extent(0);
    columns_ = view.extent(1);
    const Index panels = (columns_ + simd::panel_columns - 1) / simd::panel_columns;
    values_ = Tensor<T, 1>({panels * rows_ * simd::panel_columns});
    const auto pack = simd::product_kernels<T>().pack;
    parallel_for(panels, [&](Index panel) {
      const Index first = panel * simd::panel_columns;
      const Index left = columns_ - first;
      pack({view.data_handle() + first * view.stride(1), view.stride(0), view.stride(1)}, rows_,
           left < simd::panel_columns ? left : simd::panel_columns, values_.data() + first * rows_);
    });
  }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  bool empty() const { return rows_ == 0 || columns_ == 0; }
  /// [panel][row][panel_columns]
  const T* data() const { return values_.data(); }

 private:
  Tensor<T, 1> values_;
  Index rows_ = 0;
  Index columns_ = 0;
};

}  // namespace heed
