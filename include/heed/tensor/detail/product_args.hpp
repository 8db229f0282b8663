// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>
#include <heed/kernels/matrix_ref.hpp>
#include <heed/kernels/product_kernels.hpp>

namespace heed::detail {

/// A checked product: out = addend + a · b.
template <class T>
struct ProductArgs {
  simd::MatrixRef<T> a;       // (rows, depth)
  simd::MatrixRef<T> b;       // (depth, columns); not read if packed
  const T* packed;            // b in the layout of PackedMatrix, or null
  simd::MatrixRef<T> addend;  // (rows, columns); without data: 0
  T* out;
  Index out_row;  // strides of out
  Index out_column;
  Index rows;
  Index columns;
  Index depth;
  simd::QuantizedPanel quantized = {};  // b in blocks, instead of packed; float only
};

/// Maximum number of products computed together.
inline constexpr Index most_products = 4;

/// Computes up to most_products checked products with the same a; none may write memory that
/// another reads or writes. Defined in the library if HEED_COMPILED is set.
template <class T>
void run_products(const ProductArgs<T>* problems, Index count);

}  // namespace heed::detail
