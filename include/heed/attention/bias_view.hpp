// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// A bias on scores, (batch, heads, queries, keys); any of the four may be 1 and holds for all
/// then. Converts from views and tensors of rank 4, 3 (heads, queries, keys), 2 (queries, keys) and
/// 1 (keys). Empty: none. A bias of −inf takes its key away from its query, as the additive masks
/// of other libraries do; a mask does it without reading anything.
template <class T>
class BiasView {
 public:
  BiasView() = default;
  BiasView(TensorView<const T, 4> view) : view_(view), given_(true) {}           // NOLINT
  BiasView(TensorView<const T, 3> view) : BiasView(view.with_leading_axis()) {}  // NOLINT
  BiasView(TensorView<const T, 2> view) : BiasView(view.with_leading_axis()) {}  // NOLINT
  BiasView(TensorView<const T, 1> view) : BiasView(view.with_leading_axis()) {}  // NOLINT
  template <std::size_t Rank>
  BiasView(const Tensor<T, Rank>& tensor) : BiasView(tensor.view()) {}  // NOLINT
  template <std::size_t Rank>
  BiasView(const Tensor<T, Rank>&&) {  // NOLINT
    static_assert(Rank == 0, "a bias of a temporary tensor dangles: give the tensor a name first");
  }
  template <std::size_t Rank>
  BiasView(const TensorView<T, Rank>& view)  // NOLINT
      : BiasView(TensorView<const T, Rank>(view)) {}

  bool given() const { return given_; }
  const TensorView<const T, 4>& view() const { return view_; }

  /// The bias with its extents of 1 repeated. Throws ShapeError where an extent is neither.
  BiasView over(const Extents<4>& scores) const {
    if (!given_) return {};
    BiasView result = *this;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (view_.extent(axis) == scores[axis]) continue;
      if (view_.extent(axis) != 1) {
        throw_shape_error("attention: bias is ", view_.extents(), ", expected (batch, heads, ",
                          "queries, keys) = ", scores, " or 1 in their places");
      }
      result.view_ = result.view_.broadcast(axis, scores[axis]);
    }
    return result;
  }

 private:
  TensorView<const T, 4> view_;
  bool given_ = false;
};

}  // namespace heed
