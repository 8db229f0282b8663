// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <heed/core/parallel.hpp>
#include <heed/core/scratch.hpp>
#include <heed/simd/product_kernels.hpp>
#include <heed/tensor/matrix_product.hpp>

namespace heed::detail {

/// How a product is cut into pieces for threads: groups of panels (64 columns each) by chunks of
/// rows. Within a piece and a block of depth the panels stay in the second-level cache while the
/// rows pass by, six at a time, in the first. No cut decides a bit.
template <class T>
class ProductPieces {
 public:
  explicit ProductPieces(const ProductProblem<T>& problem)
      : problem_(problem),
        kernels_(simd::product_kernels<T>()),
        panels_((problem.columns + panel - 1) / panel) {
    const Index threads = thread_count();
    const Index wanted = threads == 1 ? 1 : 3 * threads;  // pieces
    const Index most_chunks = larger(1, problem.rows / rows_worth_packing);
    group_ = smaller(max_group, larger(1, panels_ * most_chunks / wanted));
    groups_ = (panels_ + group_ - 1) / group_;
    group_ = (panels_ + groups_ - 1) / groups_;
    groups_ = (panels_ + group_ - 1) / group_;
    Index chunks = smaller(most_chunks, (wanted + groups_ - 1) / groups_);
    while (chunks < most_chunks && groups_ * chunks % threads != 0) ++chunks;
    chunk_ = (problem.rows + chunks - 1) / chunks;
    chunk_ = (chunk_ + tile_rows - 1) / tile_rows * tile_rows;
    chunks_ = (problem.rows + chunk_ - 1) / larger(1, chunk_);
  }

  Index count() const { return groups_ * chunks_; }

  void run(Index piece) const {
    const Index first = piece / chunks_ * group_;
    const Index last = smaller(first + group_, panels_);
    const Index row = piece % chunks_ * chunk_;
    const Index end = smaller(row + chunk_, problem_.rows);
    Index k = 0;
    do {  // once even without depth: out is the addend then
      run_block(first, last, row, end, k, smaller(problem_.depth - k, simd::product_block));
      k += simd::product_block;
    } while (k < problem_.depth);
  }

 private:
  static constexpr Index panel = simd::panel_columns;
  static constexpr Index tile_rows = simd::product_rows;
  static constexpr Index max_group = 4;
  static constexpr Index rows_worth_packing = 96;
  // A row of copied a, with one cache line more so that rows do not fall on the same cache sets.
  static constexpr Index copied_row = simd::product_block + 64 / static_cast<Index>(sizeof(T));
  static constexpr Index panel_size = panel * simd::product_block;

  bool quantized() const { return problem_.quantized.blocks != nullptr; }
  simd::QuantizedPanel blocks_of(Index index, Index k) const {
    constexpr Index terms = simd::QuantizedPanel::terms;
    const auto codes = problem_.quantized.codes;
    const Index block = index * (problem_.depth / terms) + k / terms;
    return {problem_.quantized.blocks + block * simd::QuantizedPanel::block_bytes(codes), codes};
  }

  /// A block of panel `index` of b, as it lies or packed into `scratch`.
  const T* panel_of(Index index, Index rows, Index k, Index depth, T* scratch,
                    Index& stride) const {
    const Index first = index * panel;
    const Index columns = smaller(panel, problem_.columns - first);
    stride = panel;
    if (quantized()) {
      kernels_.dequantize(blocks_of(index, k), depth, scratch);
      return scratch;
    }
    if (problem_.packed != nullptr) return problem_.packed + first * problem_.depth + k * panel;
    const auto& b = problem_.b;
    const T* from = b.data + k * b.row_stride + first * b.column_stride;
    if (b.column_stride == 1 && columns == panel && rows <= 2 * tile_rows) {
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
  /// Rows of a next to each other.
  simd::Strided<T> rows_of(Index row, Index rows, Index k, Index depth, T* scratch) const {
    const auto& a = problem_.a;
    const T* from = a.data + row * a.row_stride + k * a.column_stride;
    if (a.column_stride == 1) {
      for (Index r = 0; r < rows; ++r) {
        std::memcpy(scratch + r * copied_row, from + r * a.row_stride,
                    static_cast<std::size_t>(depth) * sizeof(T));
      }
      return {scratch, copied_row, 1};
    }
    for (Index i = 0; i < depth; ++i) {
      for (Index r = 0; r < rows; ++r) {
        scratch[i * tile_rows + r] = from[r * a.row_stride + i * a.column_stride];
      }
    }
    return {scratch, 1, tile_rows};
  }

  void run_block(Index first, Index last, Index row, Index end, Index k, Index depth) const {
    T* scratch = reinterpret_cast<T*>(Scratch::of_this_thread<ProductPieces>(
        static_cast<std::size_t>(max_group * panel_size + tile_rows * copied_row) * sizeof(T)));
    T* copied = scratch + max_group * panel_size;
    const T* b[max_group];
    Index b_stride[max_group];
    const bool as_stored = quantized() && end - row == 1;  // one row reads the blocks themselves
    for (Index i = first; i < last && !as_stored; ++i) {
      b[i - first] =
          panel_of(i, end - row, k, depth, scratch + (i - first) * panel_size, b_stride[i - first]);
    }
    const auto& p = problem_;
    for (; row < end; row += tile_rows) {
      const Index rows = smaller(tile_rows, end - row);
      simd::Strided<T> a{p.a.data + row * p.a.row_stride + k * p.a.column_stride, p.a.row_stride,
                         p.a.column_stride};
      if (rows > 1 && last - first > 1 && worth_copying()) {
        a = rows_of(row, rows, k, depth, copied);
      }
      for (Index i = first; i < last; ++i) {
        const Index column = i * panel;
        T* out = p.out + row * p.out_row + column * p.out_column;
        simd::Strided<T> addend{out, p.out_row, p.out_column};
        if (k == 0) {
          addend = p.addend;
          if (addend.data != nullptr) {
            addend.data += row * addend.row_stride + column * addend.column_stride;
          }
        }
        simd::ProductTile<T> tile{a,
                                  nullptr,
                                  0,
                                  addend,
                                  out,
                                  p.out_row,
                                  p.out_column,
                                  rows,
                                  smaller(panel, p.columns - column),
                                  depth};
        if (as_stored) {
          kernels_.quantized_row(tile, blocks_of(i, k));
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
  Index panels_;
  Index group_;
  Index groups_;
  Index chunk_;
  Index chunks_;
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
void run_product_of(ProductProblem<T> problem) {
  if (problem.rows == 0 || problem.columns == 0) return;
  if (transpose_pays(problem)) {
    const auto transposed = [](simd::Strided<T> matrix) {
      return simd::Strided<T>{matrix.data, matrix.column_stride, matrix.row_stride};
    };
    const auto a = problem.a;
    problem.a = transposed(problem.b);
    problem.b = transposed(a);
    problem.addend = transposed(problem.addend);
    std::swap(problem.out_row, problem.out_column);
    std::swap(problem.rows, problem.columns);
  }
  const ProductPieces<T> pieces(problem);
  // To read a weight takes as long as to multiply some rows with it.
  const double work = static_cast<double>(problem.rows + 4) * static_cast<double>(problem.columns) *
                      static_cast<double>(problem.depth);
  if (work < 1e6) {  // shorter than waking a thread is worth
    for (Index piece = 0; piece < pieces.count(); ++piece) pieces.run(piece);
  } else {
    parallel_for(pieces.count(), [&](Index piece) { pieces.run(piece); });
  }
}

HEED_INLINE void run_product(const ProductProblem<float>& problem) { run_product_of(problem); }
HEED_INLINE void run_product(const ProductProblem<double>& problem) { run_product_of(problem); }

}  // namespace heed::detail
