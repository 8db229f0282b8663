// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/product_tile.hpp>
#include <heed/simd/quantized_panel.hpp>

namespace heed::simd {

/// Rows of a left-hand matrix, rounded to 16 bits with a scale for every block of 32 terms: an
/// error of at most 1/65534 of the block's largest magnitude. A block that is not finite is NaN.
struct RoundedRows {
  struct Block {
    float scale;
    float sum;           // scale · total
    std::int32_t total;  // of the rounded values
  };
  const std::int32_t* pairs;  // [row][pair]: values i and i + 16 of a block
  Index pair_stride;          // from row to row
  const Block* blocks;        // [row][block]
  Index block_stride;
};

/// A block of a QuantizedPanel taken apart.
struct UnpackedBlock {
  float scale[panel_columns];
  float least[panel_columns];  // of nibbles only
  std::int32_t pairs[QuantizedPanel::terms / 2 * panel_columns];
};

/// The kernels of products of rounded rows with quantized weights; T is float. An element's bits
/// depend on its own row and column alone.
template <class T>
struct RoundedKernels {
  /// Rounds a row of `depth` terms, a multiple of 32.
  void (*round_row)(const T* x, Index step, Index depth, std::int32_t* pairs,
                    RoundedRows::Block* blocks);
  /// Takes the codes of `depth` terms apart, for `tile`.
  void (*unpack)(const QuantizedPanel& panel, Index depth, UnpackedBlock* to);
  /// A tile, whose own a and b are not read, of unpacked blocks of such codes.
  void (*tile)(const ProductTile<T>& tile, const RoundedRows& a, const UnpackedBlock* blocks,
               QuantizedCodes codes);
  /// A tile of one row with the blocks as they are stored.
  void (*row)(const ProductTile<T>& tile, const RoundedRows& a, const QuantizedPanel& panel);
};

/// The kernels of the active instruction set.
template <class T>
const RoundedKernels<T>& rounded_kernels();

}  // namespace heed::simd
