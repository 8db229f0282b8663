// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>

namespace heed::simd {

/// How many numbers a line of the caches has.
template <class T>
inline constexpr Index numbers_in_line = 64 / Index{sizeof(T)};

/// A matrix as a kernel reads it: element (row, column) at `data[row * row_stride + column *
/// column_stride]`, any strides.
template <class T>
struct MatrixRef {
  const T* data = nullptr;
  Index row_stride = 0;
  Index column_stride = 1;

  /// The part from this row and this column on. Inlined because kernels call it, whatever the
  /// user's build optimizes.
  __attribute__((always_inline)) MatrixRef from(Index row, Index column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
  /// A matrix of the same strides, `numbers` ahead in memory.
  __attribute__((always_inline)) MatrixRef ahead(Index numbers) const {
    return {data + numbers, row_stride, column_stride};
  }
};

}  // namespace heed::simd
