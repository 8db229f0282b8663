// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

#include <heed/core/error.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// Whether the elements are contiguous in row-major order, as in a Tensor.
template <class T, std::size_t Rank>
bool is_row_major(const TensorView<T, Rank>& view) {
  if (view.empty()) return true;
  Index step = 1;
  for (std::size_t axis = Rank; axis-- > 0;) {
    if (view.extent(axis) != 1 && view.stride(axis) != step) return false;
    step *= view.extent(axis);
  }
  return true;
}

/// The elements of a row-major view as a span. Throws ShapeError for other views.
template <class T, std::size_t Rank>
std::span<T> as_span(const TensorView<T, Rank>& view) {
  if (!is_row_major(view)) {
    throw_shape_error("as_span: extents ", view.extents(), " with strides ", view.strides(),
                      " are not row-major");
  }
  return {view.data_handle(), static_cast<std::size_t>(view.size())};
}

/// Axes `axis` and `axis + 1` merged into one, the inverse of TensorView::split. Throws ShapeError
/// if the strides make that impossible without copying.
template <class T, std::size_t Rank>
requires(Rank > 1) TensorView<T, Rank - 1> merge_axes(const TensorView<T, Rank>& view,
                                                      std::size_t axis) {
  if (axis >= Rank - 1) {
    throw_shape_error("merge_axes: axis ", static_cast<Index>(axis), " of a view of rank ", Rank);
  }
  const Index outer = view.extent(axis), inner = view.extent(axis + 1);
  const Index inner_stride = view.stride(axis + 1);
  Index merged = 0, step = 0;
  if (__builtin_mul_overflow(outer, inner, &merged)) {
    throw_shape_error("merge_axes: axes ", axis, " and ", axis + 1, " of extents ", view.extents(),
                      " hold more elements than an Index counts");
  }
  // An axis with one index takes no step; only two real steps can disagree.
  const bool nested =
      !__builtin_mul_overflow(inner, inner_stride, &step) && view.stride(axis) == step;
  if (outer > 1 && inner > 1 && !view.empty() && !nested) {
    throw_shape_error("merge_axes: axes ", axis, " and ", axis + 1, " of extents ", view.extents(),
                      " with strides ", view.strides(), " do not lie one in the other");
  }
  Extents<Rank - 1> extents{}, strides{};
  for (std::size_t from = 0, to = 0; from < Rank; ++from) {
    if (from == axis) continue;
    extents[to] = from == axis + 1 ? merged : view.extent(from);
    strides[to++] = from == axis + 1 && inner == 1 ? view.stride(axis) : view.stride(from);
  }
  return {view.data_handle(), extents, strides};
}

}  // namespace heed
