// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/strided.hpp>

namespace heed::simd {

/// Columns of the right-hand matrix that stand side by side when it is packed.
inline constexpr Index panel_columns = 64;
/// Rows of the left-hand matrix in one tile.
inline constexpr Index product_rows = 6;
/// Terms of a sum that make one partial sum; partial sums are added in order. Decides bits.
inline constexpr Index product_block = 512;

/// What the codes of quantized weights are: 4 bits, 0 to 15; 4 bits for -8 to 7; 8 bits with a
/// sign.
enum class QuantizedCodes : std::uint8_t { nibbles, signed_nibbles, bytes };

/// Quantized weights of panel_columns columns, in blocks of 32 terms, as a product reads them: for
/// every block a scale per column and, for nibbles, a least value per column, both in half
/// precision, then words of 32 bits per column with the codes, the first in the lowest bits. A
/// weight is scale · code (+ least), rounded once.
struct QuantizedPanel {
  static constexpr Index terms = 32;  // in a block

  const std::uint8_t* blocks = nullptr;
  QuantizedCodes codes = QuantizedCodes::nibbles;

  static constexpr Index block_bytes(QuantizedCodes codes) {
    const Index halves = codes == QuantizedCodes::nibbles ? 2 : 1;
    return panel_columns * (2 * halves + (codes == QuantizedCodes::bytes ? terms : terms / 2));
  }
};

/// out(r, c) = addend(r, c) + Σ_k a(r, k) · b[k][c]: at most product_rows × panel_columns elements
/// and product_block terms.
template <class T>
struct ProductTile {
  Strided<T> a;       // (row, k)
  const T* b;         // [k][column]; whole vectors of columns can be read
  Index b_stride;     // from one k to the next
  Strided<T> addend;  // without data: 0
  T* out;             // may be the addend
  Index out_row;      // strides of out
  Index out_column;
  Index rows;
  Index columns;
  Index depth;
};

/// The matrix product's kernels. An element's bits depend on its own row of a and column of b
/// alone: not on the tile it was computed in, nor on which of the two matrices is called a.
template <class T>
struct ProductKernels {
  /// packed[k][column] = b(k, column), panel_columns apart, for columns ≤ panel_columns; what
  /// stands past them is 0 as far as a tile reads it.
  void (*pack)(Strided<T> b, Index depth, Index columns, T* packed);
  void (*tile)(const ProductTile<T>& tile);
  /// packed[k][column] = the weights of `depth` terms, a multiple of 32. Null for double, as is the
  /// next.
  void (*dequantize)(const QuantizedPanel& panel, Index depth, T* packed);
  /// A tile of one row, its b in blocks: the bits of the tile on what dequantize gives.
  void (*quantized_row)(const ProductTile<T>& tile, const QuantizedPanel& panel);
};

/// The kernels of the active instruction set.
template <class T>
const ProductKernels<T>& product_kernels();

}  // namespace heed::simd

#if HEED_DEFINITIONS
#include <heed/simd/layer_tables.inl>
#endif
