// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <heed/core/detail/scratch.hpp>
#include <heed/simd/product_kernels.hpp>
#include <heed/tensor/detail/product_list.inl>
#include <heed/tensor/detail/product_problem.hpp>
#include <heed/tensor/detail/product_tile.inl>
#include <heed/tensor/detail/rounded_product.inl>

namespace heed::detail {

/// A product piece by piece: within a piece and a block of depth the panels stay in the
/// second-level cache while the rows pass by, six at a time, in the first.
template <class T>
class ProductPieces {
 public:
  explicit ProductPieces(const ProductProblem<T>& problem)
      : problem_(problem), kernels_(simd::product_kernels<T>()) {}

  void run(const ProductCut::Piece& piece) const {
    Index k = 0;
    do {  // once even without depth: out is the addend then
      run_block(piece, k, smaller(problem_.depth - k, simd::product_block));
      k += simd::product_block;
    } while (k < problem_.depth);
  }

 private:
  static constexpr Index panel = simd::panel_columns;
  static constexpr Index tile_rows = simd::product_rows;
  static constexpr Index max_group = ProductCut::max_group;
  // A row of copied a, with one cache line more so that rows do not fall on the same cache sets.
  static constexpr Index copied_row = simd::product_block + 64 / static_cast<Index>(sizeof(T));
  // Tiles of a transposed a that are copied at a time: 48 rows are whole cache lines.
  static constexpr Index max_tiles = 8;
  static constexpr Index panel_size = panel * simd::product_block;

  bool quantized() const { return problem_.quantized.blocks != nullptr; }
  /// A block of panel `index` of b, as it lies or packed into `scratch`.
  const T* panel_of(Index index, Index rows, Index k, Index depth, T* scratch,
                    Index& stride) const {
    const Index first = index * panel;
    const Index columns = smaller(panel, problem_.columns - first);
    stride = panel;
    if (quantized()) {
      kernels_.dequantize(quantized_panel_of(problem_, index, k), depth, scratch);
      return scratch;
    }
    if (problem_.packed != nullptr) return problem_.packed + first * problem_.depth + k * panel;
    const auto& b = problem_.b;
    const T* from = b.data + k * b.row_stride + first * b.column_stride;
    // Rows that lie close together are as good as packed ones.
    constexpr Index near = 512 / static_cast<Index>(sizeof(T));
    const bool close = -near <= b.row_stride && b.row_stride <= near;
    if (b.column_stride == 1 && columns == panel && (close || rows <= 2 * tile_rows)) {
      stride = b.row_stride;
      return from;
    }
    kernels_.pack({from, b.row_stride, b.column_stride}, depth, columns, scratch);
    return scratch;
  }

  /// Whether six rows of a would be slow where they lie: a multiple of 4 KiB apart they share cache
  /// sets, and those of a transposed a touch a line for every element.
  bool worth_copying() const {
    return problem_.a.column_stride != 1 ||
           problem_.a.row_stride * static_cast<Index>(sizeof(T)) % 4096 == 0;
  }
  /// The rows of a from `row` on, its columns from k on, where they lie.
  simd::MatrixRef<T> rows_of_a(Index row, Index k) const {
    auto rows = problem_.a;
    rows.data += row * rows.row_stride + k * rows.column_stride;
    return rows;
  }
  /// Tiles of a next to each other, from the `rows` from `row` on: as many as there are of whole
  /// ones if a is transposed, where they share lines, else one. Returns their number.
  Index copy_tiles(Index row, Index rows, Index k, Index depth, T* scratch) const {
    const auto a = rows_of_a(row, k);
    if (a.column_stride == 1) {
      for (Index r = 0; r < smaller(rows, tile_rows); ++r) {
        std::memcpy(scratch + r * copied_row, a.data + r * a.row_stride,
                    static_cast<std::size_t>(depth) * sizeof(T));
      }
      return 1;
    }
    if (a.row_stride == 1 && rows >= tile_rows) {  // whole words, not number by number
      const Index tiles = smaller(rows / tile_rows, max_tiles);
      for (Index i = 0; i < depth; ++i) {
        for (Index tile = 0; tile < tiles; ++tile) {
          std::memcpy(scratch + tile * tile_rows * copied_row + i * tile_rows,
                      a.data + i * a.column_stride + tile * tile_rows, tile_rows * sizeof(T));
        }
      }
      return tiles;
    }
    for (Index i = 0; i < depth; ++i) {
      for (Index r = 0; r < smaller(rows, tile_rows); ++r) {
        scratch[i * tile_rows + r] = a.data[r * a.row_stride + i * a.column_stride];
      }
    }
    return 1;
  }
  /// Where copy_tiles put a tile.
  simd::MatrixRef<T> copied_tile(const T* scratch) const {
    if (problem_.a.column_stride == 1) return {scratch, copied_row, 1};
    return {scratch, 1, tile_rows};
  }

  void run_block(const ProductCut::Piece& piece, Index k, Index depth) const {
    const Index first = piece.first, last = piece.last, end = piece.end;
    Index row = piece.row;
    T* scratch = reinterpret_cast<T*>(Scratch::of_this_thread<ProductPieces>(
        static_cast<std::size_t>(max_group * panel_size + max_tiles * tile_rows * copied_row) *
        sizeof(T)));
    T* copied = scratch + max_group * panel_size;
    const T* b[max_group];
    Index b_stride[max_group];
    const bool as_stored = quantized() && end - row == 1;  // one row reads the blocks themselves
    for (Index i = first; i < last && !as_stored; ++i) {
      b[i - first] =
          panel_of(i, end - row, k, depth, scratch + (i - first) * panel_size, b_stride[i - first]);
    }
    const bool copying = last - first > 1 && worth_copying();
    Index at = 0, tiles = 0;  // of those copied
    for (; row < end; row += tile_rows) {
      const Index rows = smaller(tile_rows, end - row);
      auto a = rows_of_a(row, k);
      if (copying && rows > 1) {
        if (++at >= tiles) {
          tiles = copy_tiles(row, end - row, k, depth, copied);
          at = 0;
        }
        a = copied_tile(copied + at * tile_rows * copied_row);
      }
      for (Index i = first; i < last; ++i) {
        auto tile = tile_of(problem_, row, rows, i, k, depth);
        tile.a = a;
        if (as_stored) {
          kernels_.quantized_row(tile, quantized_panel_of(problem_, i, k));
          continue;
        }
        tile.b = b[i - first];
        tile.b_stride = b_stride[i - first];
        kernels_.tile(tile);
      }
    }
  }

  const ProductProblem<T>& problem_;
  const simd::ProductKernels<T>& kernels_;
};

/// outᵀ = bᵀ · aᵀ has the same bits. It pays where a has few rows and b would have to be packed
/// number by number: that costs more than their product, and packing a costs nothing.
template <class T>
bool transpose_pays(const ProductProblem<T>& problem) {
  if (problem.packed != nullptr || problem.quantized.blocks != nullptr) return false;
  constexpr Index few = 64 / static_cast<Index>(sizeof(T));
  if (problem.out_row == 1 && problem.out_column != 1) return problem.columns > few;
  return problem.rows <= few && problem.b.column_stride != 1 && problem.b.row_stride != 1;
}

template <class T>
ProductProblem<T> transposed(ProductProblem<T> problem) {
  const auto flipped = [](simd::MatrixRef<T> matrix) {
    return simd::MatrixRef<T>{matrix.data, matrix.column_stride, matrix.row_stride};
  };
  const auto a = problem.a;
  problem.a = flipped(problem.b);
  problem.b = flipped(a);
  problem.addend = flipped(problem.addend);
  std::swap(problem.out_row, problem.out_column);
  std::swap(problem.rows, problem.columns);
  return problem;
}

// A template, so that programs without products are spared the compile time of the kernels.
template <class T>
void run_products(const ProductProblem<T>* problems, Index count) {
  ProductProblem<T> flipped[most_products];
  ProductList<T> exact, rounded;
  for (Index i = 0; i < count; ++i) {
    const auto* problem = problems + i;
    if (problem->rows == 0 || problem->columns == 0) continue;
    if (transpose_pays(*problem)) problem = &(flipped[i] = transposed(*problem));
    (problem->quantized.products == QuantizedProducts::rounded ? rounded : exact).add(*problem);
  }
  exact.for_each_piece([](const ProductProblem<T>& problem, const ProductCut::Piece& piece) {
    ProductPieces<T>(problem).run(piece);
  });
  if constexpr (std::is_same_v<T, float>) run_rounded_products(rounded);
}
#if defined(HEED_COMPILED_SOURCE)
template void run_products(const ProductProblem<float>* problems, Index count);
template void run_products(const ProductProblem<double>* problems, Index count);
#endif

}  // namespace heed::detail
