// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// `view_of(x)`: the view of anything that holds values: a view itself, a Tensor, a span, a
/// std::vector; Eigen matrices too once <heed/tensor/eigen.hpp> is included. Nothing is copied.
template <class T, std::size_t Rank>
TensorView<T, Rank> view_of(const TensorView<T, Rank>& view) {
  return view;
}
template <class T, std::size_t Rank>
TensorView<T, Rank> view_of(Tensor<T, Rank>& tensor) {
  return tensor.view();
}
template <class T, std::size_t Rank>
TensorView<const T, Rank> view_of(const Tensor<T, Rank>& tensor) {
  return tensor.view();
}
template <class T, std::size_t Extent>
TensorView<T, 1> view_of(std::span<T, Extent> values) {
  return TensorView<T, 1>(std::span<T>(values));
}
template <class T>
TensorView<T, 1> view_of(std::vector<T>& values) {
  return TensorView<T, 1>(std::span<T>(values));
}
template <class T>
TensorView<const T, 1> view_of(const std::vector<T>& values) {
  return TensorView<const T, 1>(std::span<const T>(values));
}

/// What public functions take: everything `view_of` understands.
template <class X>
concept Viewable = requires(X& x) {
  view_of(x);
};

template <Viewable X>
using ViewOf = decltype(view_of(std::declval<X&>()));

/// The scalar type behind a Viewable, without const.
template <Viewable X>
using ValueOf = typename ViewOf<X>::value_type;

}  // namespace heed
