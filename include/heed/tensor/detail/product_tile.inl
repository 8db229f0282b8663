// SPDX-License-Identifier: MIT
#pragma once

#include <heed/simd/product_tile.hpp>
#include <heed/tensor/detail/product_problem.hpp>

namespace heed::detail {

/// A tile without a and b: some rows of panel `panel`, terms k … k + depth − 1.
template <class T>
simd::ProductTile<T> tile_of(const ProductProblem<T>& p, Index row, Index rows, Index panel,
                             Index k, Index depth) {
  const Index column = panel * simd::panel_columns;
  T* out = p.out + row * p.out_row + column * p.out_column;
  simd::MatrixRef<T> addend{out, p.out_row, p.out_column};
  if (k == 0) {
    addend = p.addend;
    if (addend.data != nullptr) {
      addend.data += row * addend.row_stride + column * addend.column_stride;
    }
  }
  return {{},           nullptr, 0,
          addend,       out,     p.out_row,
          p.out_column, rows,    smaller(simd::panel_columns, p.columns - column),
          depth};
}

/// The quantized panel `index` from term k on.
template <class T>
simd::QuantizedPanel quantized_panel_of(const ProductProblem<T>& problem, Index index, Index k) {
  constexpr Index terms = simd::QuantizedPanel::terms;
  auto panel = problem.quantized;
  const Index block = index * (problem.depth / terms) + k / terms;
  panel.blocks += block * simd::QuantizedPanel::block_bytes(panel.codes);
  return panel;
}

}  // namespace heed::detail
