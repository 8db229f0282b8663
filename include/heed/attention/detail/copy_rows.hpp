// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <heed/core/index.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/tensor/view.hpp>

namespace heed::detail {

/// Rows from `row` on of one (batch, head) of a tensor, as kernels read them.
template <class T>
simd::MatrixRef<T> strided_rows(const TensorView<const T, 4>& tensor, Index item, Index head,
                                Index row) {
  return {tensor.data_handle() + item * tensor.stride(0) + head * tensor.stride(1) +
              row * tensor.stride(2),
          tensor.stride(2), tensor.stride(3)};
}

/// Sets `count` numbers to +0. A loop of stores is not made wide by every compiler at -O2.
template <class T>
void clear_numbers(T* to, Index count) {
  if (count > 0) __builtin_memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));
}

/// Copies rows side by side, `padded` apart, with zeros behind their columns.
template <class T>
void copy_rows(const simd::MatrixRef<T>& from, Index rows, Index columns, T* to, Index padded) {
  for (Index row = 0; row < rows; ++row, to += padded) {
    const T* source = from.data + row * from.row_stride;
    if (from.column_stride == 1 && columns > 0) {
      __builtin_memcpy(to, source, static_cast<std::size_t>(columns) * sizeof(T));
    } else {
      for (Index column = 0; column < columns; ++column) {
        to[column] = source[column * from.column_stride];
      }
    }
    for (Index column = columns; column < padded; ++column) to[column] = T{0};
  }
}

/// Copies the rows `kept[0]`, `kept[1]`, … (ascending) side by side; forward within one array too.
template <class T>
void gather_rows(const simd::MatrixRef<T>& from, const Index* kept, Index count, Index columns,
                 T* to, Index padded) {
  for (Index row = 0; row < count; ++row) {
    const T* source = from.data + kept[row] * from.row_stride;
    if (source == to + row * padded) continue;
    copy_rows<T>({source, 0, from.column_stride}, 1, columns, to + row * padded, padded);
  }
}

/// The way back: row 0, 1, … to the rows `kept[0]`, `kept[1]`, …
template <class T>
void scatter_rows(const T* from, const Index* kept, Index count, T* to, Index padded) {
  for (Index row = 0; row < count; ++row) {
    copy_rows<T>({from + row * padded}, 1, padded, to + kept[row] * padded, padded);
  }
}

}  // namespace heed::detail
