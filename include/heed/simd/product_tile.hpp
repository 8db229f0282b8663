// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>
#include <heed/simd/matrix_ref.hpp>

namespace heed::simd {

/// Columns of the right-hand matrix that stand side by side when it is packed.
inline constexpr Index panel_columns = 64;
/// Rows of the left-hand matrix in one tile.
inline constexpr Index product_rows = 6;
/// Terms of a sum that make one partial sum; partial sums are added in order. Decides bits.
inline constexpr Index product_block = 512;

/// out(r, c) = addend(r, c) + Σ_k a(r, k) · b[k][c]: at most product_rows × panel_columns elements
/// and product_block terms.
template <class T>
struct ProductTile {
  MatrixRef<T> a;       // (row, k)
  const T* b;           // [k][column]; whole vectors of columns can be read
  Index b_stride;       // from one k to the next
  MatrixRef<T> addend;  // without data: 0
  T* out;               // may be the addend
  Index out_row;        // strides of out
  Index out_column;
  Index rows;
  Index columns;
  Index depth;
};

}  // namespace heed::simd
