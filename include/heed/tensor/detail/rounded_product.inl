// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/core/detail/scratch.hpp>
#include <heed/core/parallel.hpp>
#include <heed/simd/rounded_kernels.hpp>
#include <heed/tensor/detail/product_list.inl>
#include <heed/tensor/detail/product_problem.hpp>
#include <heed/tensor/detail/product_tile.inl>

namespace heed::detail {

/// A product of rounded rows with quantized weights, piece by piece; T is float.
template <class T>
class RoundedPieces {
 public:
  RoundedPieces(const ProductProblem<T>& problem, const simd::RoundedRows& rounded)
      : problem_(problem), rounded_(rounded), kernels_(simd::rounded_kernels<T>()) {}

  void run(const ProductCut::Piece& piece) const {
    for (Index k = 0; k < problem_.depth; k += simd::product_block) {
      run_block(piece, k, smaller(problem_.depth - k, simd::product_block));
    }
  }

 private:
  using Block = simd::UnpackedBlock;
  static constexpr Index terms = simd::QuantizedPanel::terms;
  static constexpr Index panel_blocks = simd::product_block / terms;

  simd::RoundedRows rows_from(Index row, Index k) const {
    auto rows = rounded_;
    rows.pairs += row * rows.pair_stride + k / 2;
    rows.blocks += row * rows.block_stride + k / terms;
    return rows;
  }

  void run_block(const ProductCut::Piece& piece, Index k, Index depth) const {
    if (piece.end - piece.row == 1) {
      for (Index i = piece.first; i < piece.last; ++i) {
        kernels_.row(tile_of(problem_, piece.row, 1, i, k, depth), rows_from(piece.row, k),
                     quantized_panel_of(problem_, i, k));
      }
      return;
    }
    auto* blocks = reinterpret_cast<Block*>(Scratch::of_this_thread<RoundedPieces>(
        static_cast<std::size_t>(ProductCut::max_group * panel_blocks) * sizeof(Block)));
    for (Index i = piece.first; i < piece.last; ++i) {
      kernels_.unpack(quantized_panel_of(problem_, i, k), depth,
                      blocks + (i - piece.first) * panel_blocks);
    }
    for (Index row = piece.row; row < piece.end; row += simd::product_rows) {
      const Index rows = smaller(simd::product_rows, piece.end - row);
      for (Index i = piece.first; i < piece.last; ++i) {
        kernels_.tile(tile_of(problem_, row, rows, i, k, depth), rows_from(row, k),
                      blocks + (i - piece.first) * panel_blocks, problem_.quantized.codes);
      }
    }
  }

  const ProductProblem<T>& problem_;
  const simd::RoundedRows& rounded_;
  const simd::RoundedKernels<T>& kernels_;
};

/// At most slab_rows rows of products with quantized weights: their a is rounded once.
template <class T>
void run_rounded_slab(const ProductList<T>& products) {
  const ProductProblem<T>& first = products[0];  // all have its rows and depth
  using Block = simd::RoundedRows::Block;
  const Index pairs = first.depth / 2, blocks = first.depth / simd::QuantizedPanel::terms;
  const auto carve = [&](Carver carver, std::int32_t*& pair, Block*& block) {
    pair = carver.take<std::int32_t>(first.rows * pairs);
    block = carver.take<Block>(first.rows * blocks);
    return carver.used();
  };
  std::int32_t* pair = nullptr;
  Block* block = nullptr;
  const std::size_t bytes = carve(Carver(nullptr), pair, block);
  carve(Carver(Scratch::of_this_thread<Block>(bytes)), pair, block);
  const auto round_row = simd::rounded_kernels<T>().round_row;
  const auto round = [&](Index row) {
    round_row(first.a.data + row * first.a.row_stride, first.a.column_stride, first.depth,
              pair + row * pairs, block + row * blocks);
  };
  if (first.rows * first.depth < 50000) {
    for (Index row = 0; row < first.rows; ++row) round(row);
  } else {
    constexpr Index chunk = 16;
    parallel_for((first.rows + chunk - 1) / chunk, [&](Index i) {
      const Index end = smaller((i + 1) * chunk, first.rows);
      for (Index row = i * chunk; row < end; ++row) round(row);
    });
  }
  const simd::RoundedRows rounded{pair, pairs, block, blocks};
  products.for_each_piece([&](const ProductProblem<T>& problem, const ProductCut::Piece& piece) {
    RoundedPieces<T>(problem, rounded).run(piece);
  });
}

/// Rounded rows are kept for some rows at a time, so that memory does not grow with their number.
template <class T>
void run_rounded_products(const ProductList<T>& products) {
  constexpr Index slab_rows = 768;
  const Index rows = products.count() == 0 ? 0 : products[0].rows;
  for (Index row = 0; row < rows; row += slab_rows) {
    ProductProblem<T> parts[most_products];
    ProductList<T> slab;
    for (Index i = 0; i < products.count(); ++i) {
      auto& part = parts[i] = products[i];
      part.rows = smaller(slab_rows, rows - row);
      part.a.data += row * part.a.row_stride;
      if (part.addend.data != nullptr) part.addend.data += row * part.addend.row_stride;
      part.out += row * part.out_row;
      slab.add(part);
    }
    run_rounded_slab(slab);
  }
}

}  // namespace heed::detail
