// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>
#include <heed/simd/matrix_ref.hpp>
#include <heed/simd/product_kernels.hpp>

namespace heed::detail {

/// A checked product: out = addend + a · b.
template <class T>
struct ProductProblem {
  simd::MatrixRef<T> a;       // (rows, depth)
  simd::MatrixRef<T> b;       // (depth, columns); unread if packed
  const T* packed;            // b as PackedMatrix has it, or null
  simd::MatrixRef<T> addend;  // (rows, columns); without data: 0
  T* out;
  Index out_row;  // strides of out
  Index out_column;
  Index rows;
  Index columns;
  Index depth;
  simd::QuantizedPanel quantized = {};  // b in blocks, in place of packed; float only
};

/// Products that can be computed together, in checked problems.
inline constexpr Index most_products = 4;

/// The products of up to most_products checked problems with the same a, none of which writes what
/// another reads or writes; in the library when HEED_COMPILED is set.
template <class T>
void run_products(const ProductProblem<T>* problems, Index count);

}  // namespace heed::detail
