// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

// Forward declarations only: programs without Eigen are spared the second it takes to compile;
// programs with Eigen include it, before heed or after.
namespace Eigen {
template <typename Derived>
class DenseBase;
template <typename Derived>
class PlainObjectBase;
template <typename Scalar, int Rows, int Columns, int Options, int MaxRows, int MaxColumns>
class Matrix;
template <typename Matrix, int Options, typename Stride>
class Map;
template <int Outer, int Inner>
class Stride;
template <int Value>
class InnerStride;
}  // namespace Eigen

namespace heed {

namespace detail {

inline constexpr int eigen_dynamic = -1, eigen_row_major = 1, eigen_column_major = 0,
                     eigen_unaligned = 0, eigen_direct_access = 0x40;

/// An Eigen matrix type of scalars T; const if T is.
template <class T, int Columns, int Order>
using EigenMatrix = std::conditional_t<
    std::is_const_v<T>,
    const Eigen::Matrix<std::remove_const_t<T>, eigen_dynamic, Columns, Order, eigen_dynamic,
                        Columns>,
    Eigen::Matrix<std::remove_const_t<T>, eigen_dynamic, Columns, Order, eigen_dynamic, Columns>>;

/// Eigen's type, instantiated only once T is known.
template <class T>
using EigenInnerStride =
    std::conditional_t<std::is_void_v<T>, void, Eigen::InnerStride<eigen_dynamic>>;

template <class Derived>
void eigen_object(const Eigen::DenseBase<Derived>&);

template <class X>
concept EigenObject = requires(const X& x) {
  eigen_object(x);
};
template <class Derived>
void plain_eigen_object(const Eigen::PlainObjectBase<Derived>&);
template <class X>
concept PlainEigenObject = requires(const X& x) {
  plain_eigen_object(x);
};
/// Matrices and arrays, as opposed to maps, references and blocks of them.
template <PlainEigenObject X>
inline constexpr bool owns_values<X> = true;
template <PlainEigenObject X>
inline constexpr std::size_t owned_axes<X> = 2;

/// What stands for the view of an expression; has no extents, so that expressions are not Viewable.
struct NoView {};

template <class X, std::size_t Rank>
concept TensorOf =
    std::same_as<std::remove_cvref_t<X>, Tensor<typename std::remove_cvref_t<X>::value_type, Rank>>;

/// Eigen objects in memory: matrix, array, map, reference, block, row, transpose.
template <class X>
concept EigenMemory = EigenObject<X> && requires(const X& x) {
  x.data();
  requires(int{X::Flags} & eigen_direct_access) != 0;
};

}  // namespace detail

template <class T>
using MatrixMap = Eigen::Map<detail::EigenMatrix<T, detail::eigen_dynamic, detail::eigen_row_major>,
                             detail::eigen_unaligned,
                             Eigen::Stride<detail::eigen_dynamic, detail::eigen_dynamic>>;
template <class T>
using VectorMap = Eigen::Map<detail::EigenMatrix<T, 1, detail::eigen_column_major>,
                             detail::eigen_unaligned, detail::EigenInnerStride<T>>;

/// A (rows, columns) view as an Eigen matrix on the same memory, any strides. Nothing is copied;
/// the memory must outlive the result.
template <class T>
MatrixMap<T> as_matrix(const TensorView<T, 2>& view) {
  return MatrixMap<T>(view.data_handle(), view.extent(0), view.extent(1),
                      {view.stride(0), view.stride(1)});
}
/// A vector view as an Eigen column vector on the same memory.
template <class T>
VectorMap<T> as_vector(const TensorView<T, 1>& view) {
  return VectorMap<T>(view.data_handle(), view.extent(0),
                      detail::EigenInnerStride<T>(view.stride(0)));
}
// Temporary tensors are refused, since an Eigen::Map must not outlive the values.
template <detail::TensorOf<2> Owner>
auto as_matrix(Owner&& tensor) {
  return as_matrix(std::forward<Owner>(tensor).view());
}
template <detail::TensorOf<1> Owner>
auto as_vector(Owner&& tensor) {
  return as_vector(std::forward<Owner>(tensor).view());
}
// What is no matrix.
template <Viewable X>
requires(ViewOf<const X>::rank() != 2) MatrixMap<const ValueOf<const X>> as_matrix(const X&) {
  static_assert(detail::never<X>,
                "as_matrix takes (rows, columns): as_vector(x) of a vector, and of several "
                "matrices as_matrix(x[0]) of one");
  return {nullptr, 0, 0, {0, 0}};
}

/// An Eigen object as a (rows, columns) view on its memory, row- or column-major, with Eigen's own
/// strides. Vectors are (n, 1) or (1, n) too, as in Eigen; `.select(1, 0)` makes a rank-1 view of a
/// column vector.
template <detail::EigenMemory X>
struct ViewAdapter<X> {
  template <class Object>
  static auto view(Object& object) {
    using T = std::remove_pointer_t<decltype(object.data())>;
    return TensorView<T, 2>(object.data(), {object.rows(), object.cols()},
                            {object.rowStride(), object.colStride()});
  }
  /// A matrix of zeros in the same storage order.
  static auto result(const Extents<2>& extents) {
    constexpr int order = X::IsRowMajor ? detail::eigen_row_major : detail::eigen_column_major;
    using Matrix = detail::EigenMatrix<typename X::Scalar, detail::eigen_dynamic, order>;
    return Matrix(Matrix::Zero(extents[0], extents[1]));
  }
};

/// Eigen expressions: sums, products and the like. `attention` and `plan` on tensors,
/// `attention_weights` and `heatmap_of` evaluate them; other functions require `.eval()`.
template <class X>
requires(detail::EigenObject<X> && !detail::EigenMemory<X>) struct ViewAdapter<X> {
  static auto evaluated(const X& x) { return x.eval(); }
};
// By a conversion, so that the view of what is in memory is preferred.
template <class Derived>
detail::NoView view_of(const Eigen::DenseBase<Derived>&) {
  return detail::expect_evaluated<Derived>(), detail::NoView();
}

}  // namespace heed
