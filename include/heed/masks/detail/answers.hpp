// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

template <class Values>
concept ListOfAnswers = requires(const Values& values, std::size_t i) {
  { values.size() } -> std::convertible_to<std::size_t>;
  { values[i] } -> std::convertible_to<float>;
};

/// A Tensor or a view, told by what it can do: masks know nothing of tensors.
template <class Matrix>
concept TensorOfAnswers = requires(const Matrix& matrix) {
  Matrix::rank();
  { matrix.extents()[0] } -> std::convertible_to<Index>;
};
template <class Matrix>
concept MatrixOfAnswers = TensorOfAnswers<Matrix> || requires(const Matrix& matrix, Index i) {
  { matrix.rows() } -> std::convertible_to<Index>;
  { matrix.cols() } -> std::convertible_to<Index>;
  matrix(i, i);
};

template <MatrixOfAnswers Matrix>
MaskShape mask_shape_of(const Matrix& matrix) {
  if constexpr (TensorOfAnswers<Matrix>) {
    constexpr std::size_t rank = Matrix::rank();
    static_assert(rank >= 2 && rank <= 4,
                  "Dense takes (queries, keys), (heads, queries, keys) or "
                  "(batch, heads, queries, keys)");
    const auto extents = matrix.extents();
    return {rank < 4 ? 1 : extents[0], rank < 3 ? 1 : extents[rank - 3], extents[rank - 2],
            extents[rank - 1]};
  } else {
    return {1, 1, matrix.rows(), matrix.cols()};
  }
}

template <class Matrix>
auto answer_at(const Matrix& matrix, Index item, Index head, Index row, Index key) {
  if constexpr (TensorOfAnswers<Matrix>) {
    if constexpr (Matrix::rank() == 4) return matrix(item, head, row, key);
    if constexpr (Matrix::rank() == 3) return matrix(head, row, key);
    if constexpr (Matrix::rank() == 2) return matrix(row, key);
  } else {
    return matrix(row, key);
  }
}

/// The largest number that hides a key: −inf, and PyTorch's `finfo.min` of float and bfloat16,
/// which a bias of floats counts as −inf too.
inline constexpr double largest_hiding = -2.4e38;

/// What a value of a mask says: a bool itself, 0 yes and −inf no.
template <class T>
bool lets_through(const T& value, Index row, Index key) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else {
    static_assert(!std::is_integral_v<T>,
                  "a mask holds bool (true: may look) or floating-point numbers (0 or -inf)");
    const auto number = static_cast<double>(value);
    if (number == 0) return true;
    if (!(number <= largest_hiding)) {
      throw_invalid_argument("Dense: ", number, " in row ", row, ", key ", key,
                             "; an additive mask holds 0 and -inf, other numbers are a bias");
    }
    return false;
  }
}

}  // namespace heed::detail
