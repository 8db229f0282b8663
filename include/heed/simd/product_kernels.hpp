// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/product_tile.hpp>
#include <heed/simd/quantized_panel.hpp>

namespace heed::simd {

/// The matrix product's kernels. An element's bits depend on its own row of a and column of b
/// alone: not on the tile it was computed in, nor on which of the two matrices is called a.
template <class T>
struct ProductKernels {
  /// packed[k][column] = b(k, column), panel_columns apart, for columns ≤ panel_columns; what
  /// stands past them is 0 as far as a tile reads it.
  void (*pack)(MatrixRef<T> b, Index depth, Index columns, T* packed);
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
