// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

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
  simd::QuantizedPanel quantized = {};           // b in blocks, instead of packed; float only
  simd::MatrixRef<std::uint16_t> narrow_a = {};  // with data: a, as bits of bfloat16; float only
  simd::MatrixRef<std::uint16_t> narrow_b = {};

  bool in_blocks() const { return quantized.blocks != nullptr; }
};

/// Whether to compute outᵀ = bᵀ · aᵀ, which has the same bits. It pays where a has few rows and b
/// would have to be packed number by number: that costs more than the product, and packing a costs
/// nothing. And where b is one column, which would fill one lane of a vector.
template <class T>
bool transpose_pays(const ProductArgs<T>& args) {
  if (args.packed != nullptr || args.in_blocks()) return false;
  if (args.columns == 1) return args.rows > 1;
  constexpr Index few = simd::numbers_in_line<T>;
  if (args.out_row == 1 && args.out_column != 1) return args.columns > few;
  return args.rows <= few && args.b.column_stride != 1 && args.b.row_stride != 1;
}

template <class T>
ProductArgs<T> transposed(ProductArgs<T> args) {
  const auto flip = [](auto& matrix) { std::swap(matrix.row_stride, matrix.column_stride); };
  std::swap(args.a, args.b);
  std::swap(args.narrow_a, args.narrow_b);
  flip(args.a);
  flip(args.b);
  flip(args.narrow_a);
  flip(args.narrow_b);
  flip(args.addend);
  std::swap(args.out_row, args.out_column);
  std::swap(args.rows, args.columns);
  return args;
}

/// Maximum number of products computed together.
inline constexpr Index most_products = 4;

/// Computes up to most_products checked products with the same a; none may write memory that
/// another reads or writes. Defined in the library if HEED_COMPILED is set.
template <class T>
void run_products(const ProductArgs<T>* problems, Index count);

}  // namespace heed::detail
