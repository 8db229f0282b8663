// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/copy_rows.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/parallel.hpp>
#include <heed/simd/bfloat16_kernels.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed::detail {

/// A tensor that a computation in T = float reads: a copy of bfloat16 numbers, exactly, or a tensor
/// of float as it lies.
template <class T>
class WidenedTensor {
 public:
  template <Viewable X>
  explicit WidenedTensor(const X& tensor) {
    const auto view = as_rank_4(view_of(tensor));
    if constexpr (std::is_same_v<ValueOf<X>, T>) {
      view_ = view;
    } else {
      static_assert(std::is_same_v<ValueOf<X>, bfloat16>, "a tensor of bfloat16, or as computed");
      narrow_ = view;
      copy_ = Tensor<T, 4>(view.extents());
      widen();
      view_ = copy_.view();
    }
  }
  WidenedTensor(const WidenedTensor&) = delete;
  WidenedTensor& operator=(const WidenedTensor&) = delete;

  const TensorView<const T, 4>& view() const { return view_; }

  /// Fails where `written` shares memory with the tensor that was copied; `call`, `written_name`
  /// and `name` say what these are.
  template <class Written>
  void check_apart(const char* call, const char* written_name, const Written& written,
                   const char* name) const {
    if (!overlaps(written, narrow_)) return;
    throw_shape_error(call, ": ", written_name, " overlaps ", name);
  }

 private:
  void widen() {
    const Index heads = narrow_.extent(1), rows = narrow_.extent(2), columns = narrow_.extent(3);
    if (copy_.size() == 0) return;
    parallel_for(narrow_.extent(0) * heads, [&](Index i) {
      const auto from = strided_rows(narrow_, i / heads, i % heads, 0);
      simd::bfloat16_kernels<T>().widen({&from.data->bits, from.row_stride, from.column_stride},
                                        rows, columns, copy_.data() + i * rows * columns);
    });
  }

  TensorView<const bfloat16, 4> narrow_;
  Tensor<T, 4> copy_;
  TensorView<const T, 4> view_;
};

}  // namespace heed::detail
