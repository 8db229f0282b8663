// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/detail/row_work.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/tensor.hpp>

// Padding in training: the loss does not look at it, so that its rows have gradients of exactly 0.
// Such a row is absent from every other gradient, whatever it holds, NaN too: 0 · NaN is never
// computed, or not kept.
namespace heed::detail {

template <class T>
bool all_zero(const T* row, Index width) {
  return std::all_of(row, row + width, [](T value) { return value == T{0}; });
}

/// Which rows are not all 0. Most answers take one look.
template <class T>
std::vector<Index> live_rows(const TensorView<const T, 2>& grad) {
  std::vector<Index> live;
  for (Index row = 0; row < grad.extent(0); ++row) {
    if (!all_zero(&grad(row, 0), grad.extent(1))) live.push_back(row);
  }
  return live;
}

template <class T>
Tensor<T, 2> gathered(const TensorView<const T, 2>& from, const std::vector<Index>& rows) {
  const Index width = from.extent(1);
  auto some = Tensor<T, 2>::uninitialized({static_cast<Index>(rows.size()), width});
  T* to = some.data();
  for (const Index row : rows) to = std::copy_n(&from(row, 0), width, to);
  return some;
}

/// Adds gradᵀ · x to the gradient of a weight, over the rows that are live. Rows are contiguous.
template <Scalar T>
void accumulate_weight(const TensorView<const T, 2>& grad, const TensorView<const T, 2>& x,
                       const TensorView<T, 2>& weight) {
  if (grad.size() == 0) return;
  const auto live = live_rows(grad);
  if (static_cast<Index>(live.size()) == grad.extent(0)) {
    matrix_product(grad.permute({1, 0}), x, weight, {.accumulate = true});
  } else if (!live.empty()) {
    const auto grads = gathered(grad, live), inputs = gathered(x, live);
    matrix_product(grads.view().permute({1, 0}), inputs, weight, {.accumulate = true});
  }
}

/// out = a · b, where rows of `a` that are 0 stay so, whatever b has there; `out` may be `a`. All
/// of one size, their last axis the width.
template <Scalar T, std::size_t A, std::size_t B, std::size_t Out>
void multiply_live(const Tensor<T, A>& a, const Tensor<T, B>& b, Tensor<T, Out>& out) {
  const auto [rows, width] = row_extents(a.extents());
  if (row_extents(b.extents()) != row_extents(a.extents())) {
    throw_shape_error("backward: a gradient of ", a.extents(), " where forward saw ", b.extents());
  }
  for_row_runs(rows, width, [&, width = width](Index first, Index last) {
    for (Index at = first * width; at < last * width; at += width) {
      if (all_zero(a.data() + at, width)) {
        std::fill_n(out.data() + at, width, T{0});
      } else {
        simd::row_kernels<T>().multiply(a.data() + at, b.data() + at, out.data() + at, width);
      }
    }
  });
}

/// The log-sum-exp for a backward pass, −inf for queries that are dead: these count as having seen
/// no key. lse (batch, heads, queries), grad (batch, queries, dim).
template <Scalar T>
Tensor<T, 3> lse_of_live_queries(Tensor<T, 3> lse, const Tensor<T, 3>& grad) {
  const Index queries = grad.extent(1), width = grad.extent(2);
  for (Index row = 0; row < grad.extent(0) * queries; ++row) {
    if (!all_zero(grad.data() + row * width, width)) continue;
    for (Index head = 0; head < lse.extent(1); ++head) {
      lse(row / queries, head, row % queries) = -std::numeric_limits<T>::infinity();
    }
  }
  return lse;
}

}  // namespace heed::detail
