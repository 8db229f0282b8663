// SPDX-License-Identifier: MIT
#pragma once

// The one door to Eigen. Debian and Ubuntu keep Eigen in /usr/include/eigen3, which compilers
// search only when told; the second form finds it there without a flag.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif
#pragma GCC diagnostic pop

#include <concepts>
#include <type_traits>

#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "heed needs Eigen 3.4 or newer"
#endif

namespace heed {

namespace detail {

/// An Eigen matrix type of scalars T, const if T is.
template <class T, int Columns, int Order>
using EigenMatrix =
    std::conditional_t<std::is_const_v<T>,
                       const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Columns, Order>,
                       Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Columns, Order>>;

template <class Derived>
void eigen_object(const Eigen::DenseBase<Derived>&);

/// Eigen objects with memory behind them: matrix, array, map, reference, block, row, transpose.
/// Sums and products are expressions; they need `.eval()` first.
template <class X>
concept EigenMemory = requires(const X& x) {
  eigen_object(x);
  x.data();
  requires(int{X::Flags} & int{Eigen::DirectAccessBit}) != 0;
};

}  // namespace detail

template <class T>
using MatrixMap = Eigen::Map<detail::EigenMatrix<T, Eigen::Dynamic, Eigen::RowMajor>,
                             Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
template <class T>
using VectorMap = Eigen::Map<detail::EigenMatrix<T, 1, Eigen::ColMajor>, Eigen::Unaligned,
                             Eigen::InnerStride<Eigen::Dynamic>>;

/// A (rows, columns) view as an Eigen matrix on the same memory, any strides. Nothing is copied;
/// the memory must outlive it.
template <class T>
MatrixMap<T> as_matrix(const TensorView<T, 2>& view) {
  return MatrixMap<T>(view.data_handle(), view.extent(0), view.extent(1),
                      {view.stride(0), view.stride(1)});
}
/// A vector view as an Eigen column vector on the same memory.
template <class T>
VectorMap<T> as_vector(const TensorView<T, 1>& view) {
  return VectorMap<T>(view.data_handle(), view.extent(0),
                      Eigen::InnerStride<Eigen::Dynamic>(view.stride(0)));
}
template <class T>
MatrixMap<T> as_matrix(Tensor<T, 2>& tensor) {
  return as_matrix(tensor.view());
}
template <class T>
MatrixMap<const T> as_matrix(const Tensor<T, 2>& tensor) {
  return as_matrix(tensor.view());
}
template <class T>
VectorMap<T> as_vector(Tensor<T, 1>& tensor) {
  return as_vector(tensor.view());
}
template <class T>
VectorMap<const T> as_vector(const Tensor<T, 1>& tensor) {
  return as_vector(tensor.view());
}

/// Eigen's memory as a (rows, columns) view, row- or column-major, with Eigen's own strides.
/// Vectors too are (n, 1) or (1, n), as in Eigen; `.select(1, 0)` makes a rank-1 view of a column
/// vector.
template <detail::EigenMemory X>
struct ViewAdapter<X> {
  template <class Object>
  static auto view(Object& object) {
    using T = std::remove_pointer_t<decltype(object.data())>;
    return TensorView<T, 2>(object.data(), {object.rows(), object.cols()},
                            {object.rowStride(), object.colStride()});
  }
};

}  // namespace heed
