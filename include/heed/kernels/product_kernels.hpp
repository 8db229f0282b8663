// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/index.hpp>
#include <heed/kernels/matrix_ref.hpp>

namespace heed::simd {

/// Number of columns in a panel of a packed right-hand matrix.
inline constexpr Index panel_columns = 64;
/// The most rows of the left-hand matrix in one piece; tiles take more.
inline constexpr Index product_rows = 6;
/// Number of terms in one partial sum; partial sums are added in order. Decides bits.
inline constexpr Index product_block = 512;

/// out(r, c) = addend(r, c) + Σ_k a(r, k) · b[k][c]: at most product_rows (tiles: more) ×
/// panel_columns elements and, unless b is lying, product_block terms.
template <class T>
struct ProductPiece {
  MatrixRef<T> a;       // (row, k)
  const T* b;           // [k][column]; whole vectors of columns can be read
  Index b_stride;       // stride between two k
  MatrixRef<T> addend;  // without data: 0
  T* out;               // may be the addend
  Index out_row;        // stride of rows of out
  Index out_column;
  Index rows;
  Index columns;
  Index depth;
  const T* next = nullptr;  // null, or what is read soon: depth × panel_columns packed numbers or,
                            // of a lying b, the columns behind the panel
  bool near = false;        // see prefetches_near
  bool soon = false;        // of a single row: see prefetches_soon
};

/// The codes of quantized weights: 4 bits, 0 to 15; 4 bits for -8 to 7; 8 bits, signed; the weight
/// itself as a bfloat16 or in half precision.
enum class QuantizedCodes : std::uint8_t { nibbles, signed_nibbles, bytes, bfloat16, half };

}  // namespace heed::simd

namespace heed {

/// How products are computed: with the bits of floats, or faster, from rounded factors. Quantized
/// weights have products with rows of 16-bit integers (simd::Int16Rows), bfloat16 weights with rows
/// of bfloat16; either kind has exact products where the other's rounding is chosen. Two float
/// factors are both rounded to bfloat16, or neither.
enum class Products : std::uint8_t { exact, int16, bfloat16 };

}  // namespace heed

namespace heed::simd {

/// Quantized weights of panel_columns columns, in blocks of 32 terms, as products read them. Every
/// block has a scale per column and, for nibbles, a minimum per column, both in half precision,
/// then 32-bit words per column with the codes. A weight is scale · code (+ minimum), rounded once.
/// For exact products the codes follow one another from the lowest bits of the first word. For
/// int16 products, terms i and i + 16 of a block form pair i, since integer products come in
/// pairs; a word has 4 pairs of nibbles or 2 of bytes, the second of each pair 16 bits above the
/// first.
///
/// A block of weights of 16 bits has no scale. A word per column has two terms, the first one in
/// its upper half, since the products of pairs add that one first. A last block that is not full
/// ends with zeros.
struct QuantizedPanel {
  static constexpr Index terms = 32;  // per block

  const std::uint8_t* blocks = nullptr;
  QuantizedCodes codes = QuantizedCodes::nibbles;
  Products products = Products::exact;

  static constexpr bool has_pairs(QuantizedCodes codes) {
    return codes == QuantizedCodes::bfloat16 || codes == QuantizedCodes::half;
  }
  static constexpr Index block_bytes(QuantizedCodes codes) {
    if (has_pairs(codes)) return 2 * terms * panel_columns;
    const Index halves = codes == QuantizedCodes::nibbles ? 2 : 1;
    return panel_columns * (2 * halves + (codes == QuantizedCodes::bytes ? terms : terms / 2));
  }
  /// The size of a panel of `depth` terms.
  static constexpr Index bytes(QuantizedCodes codes, Index depth) {
    return (depth + terms - 1) / terms * block_bytes(codes);
  }
};

/// The kernels of the matrix product. An element's bits depend only on its own row of a and column
/// of b: not on its piece, nor on which of the two matrices is called a.
template <class T>
struct ProductKernels {
  /// packed[k][column] = b(k, column), panel_columns apart, for columns ≤ panel_columns; zeros
  /// follow as far as a piece reads.
  void (*pack)(MatrixRef<T> b, Index depth, Index columns, T* packed);
  void (*piece)(const ProductPiece<T>& piece);
  /// The same for at most `lying_rows` rows of any number of terms, in partial sums, that lie side
  /// by side in a, and in a b that lies [column][k], `b_stride` between columns.
  void (*lying_piece)(const ProductPiece<T>& piece);
  /// packed[k][column] = the weights of `depth` terms, whole blocks or for pairs any number.
  /// Null for double, like the next.
  void (*dequantize)(const QuantizedPanel& panel, Index depth, T* packed);
  /// A piece with its b in blocks: the bits of the piece on the output of dequantize. Without
  /// pairs, the piece has one row.
  void (*quantized_piece)(const ProductPiece<T>& piece, const QuantizedPanel& panel);
  Index lying_rows;  // with more rows it is as fast to pack b first
};

/// Rows of a left-hand matrix, rounded to 16 bits with one scale per block of 32 terms: an error of
/// at most 1/65534 of the block's largest magnitude. A block that is not finite is NaN.
struct Int16Rows {
  struct Block {
    float scale;
    float sum;           // scale · total
    std::int32_t total;  // of the rounded values
  };
  const std::int32_t* pairs;  // [row][pair]: values i and i + 16 of a block
  Index pair_stride;          // stride between rows
  const Block* blocks;        // [row][block]
  Index block_stride;
};

/// An unpacked block of a QuantizedPanel.
struct UnpackedBlock {
  float scale[panel_columns];
  float least[panel_columns];  // nibbles only
  std::int32_t
      words[QuantizedPanel::terms / 2 * panel_columns];  // as Int16Pieces::piece reads them
};

/// Pieces of the product of int16 rows with quantized weights; T is float.
template <class T>
struct Int16Pieces {
  Index rows;  // the largest number of rows of a piece
  /// Unpacks the codes of `depth` terms for `piece`.
  void (*unpack)(const QuantizedPanel& panel, Index depth, UnpackedBlock* to);
  /// A piece of int16 rows and unpacked blocks; the a and b of `piece` are not read.
  void (*piece)(const ProductPiece<T>& piece, const Int16Rows& a, const UnpackedBlock* blocks,
                QuantizedCodes codes);
};

/// The kernels for products of int16 rows with quantized weights; T is float. An element's bits
/// depend only on its own row and column; sets with fused multiply-adds have the same.
template <class T>
struct Int16Kernels {
  /// Rounds a row of `depth` terms, a multiple of 32.
  void (*round_row)(const T* x, Index step, Index depth, std::int32_t* pairs,
                    Int16Rows::Block* blocks);
  /// A piece of one row, with the blocks as stored.
  void (*row)(const ProductPiece<T>& piece, const Int16Rows& a, const QuantizedPanel& panel);
  Int16Pieces<T> few;   // for at most product_rows rows
  Int16Pieces<T> many;  // for more
};

/// The kernels for products of factors rounded to bfloat16, to nearest; T is float. Terms are added
/// in order with fused multiply-adds, and a term of 0 where their number is odd: the bits of the
/// float product of the rounded factors, except that the set avx512_bf16 takes subnormal numbers,
/// partial sums included, as 0. So do amx and its twin, whose terms are added in groups of 32 as
/// TileKernel says, from a sum of 0 on.
template <class T>
struct Bfloat16ProductKernels {
  /// The largest number of rows of a piece. Pieces of more than product_rows read whole blocks of
  /// terms, and as many rows as the next multiple of 16.
  Index rows;
  Index terms_in_float;  // of rounded rows: 1, or 2 in pairs like those of a QuantizedPanel
  /// Rounds rows of `depth` terms for `piece`, `stride` floats apart, with zeros up to a whole
  /// block if pieces read them.
  void (*round_rows)(MatrixRef<T> a, Index rows, Index depth, T* rounded, Index stride);
  /// The same for bits of bfloat16.
  void (*copy_rows)(MatrixRef<std::uint16_t> a, Index rows, Index depth, T* rounded, Index stride);
  /// Rounds b(k, column) to a QuantizedPanel of bfloat16, for columns ≤ panel_columns.
  void (*pack)(MatrixRef<T> b, Index depth, Index columns, std::uint8_t* blocks);
  void (*pack_bits)(MatrixRef<std::uint16_t> b, Index depth, Index columns, std::uint8_t* blocks);
  /// Rounds numbers to such bits.
  void (*narrow)(const T* x, Index count, std::uint16_t* to);
  /// Null, or what is called before and after some pieces: tiles are in use in between.
  void (*begin)();
  void (*end)();
  /// A piece of such rows and blocks; the a and b of `piece` are not read.
  void (*piece)(const ProductPiece<T>& piece, const T* a, Index a_stride,
                const std::uint8_t* blocks);
};

// The kernels of the active instruction set.

template <class T>
const ProductKernels<T>& product_kernels();
template <class T>
const Int16Kernels<T>& int16_kernels();
template <class T>
const Bfloat16ProductKernels<T>& bfloat16_product_kernels();

}  // namespace heed::simd
