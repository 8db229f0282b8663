// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/parallel.hpp>
#include <heed/core/scalar.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

/// (batch, tokens, dim) as (batch · tokens, dim), which is how most layers see it.
template <class T>
TensorView<T, 2> as_rows(Tensor<T, 3>& x) {
  return {x.data(), {x.extent(0) * x.extent(1), x.extent(2)}};
}
template <class T>
TensorView<const T, 2> as_rows(const Tensor<T, 3>& x) {
  return {x.data(), {x.extent(0) * x.extent(1), x.extent(2)}};
}

/// Calls visit(first, last) for runs of rows that together are all of them, on several threads when
/// there is enough to do.
template <class Visit>
void for_row_runs(Index rows, Index width, const Visit& visit) {
  constexpr Index run = 32;
  const Index runs = (rows + run - 1) / run;
  const auto one = [&](Index i) { visit(i * run, (i + 1) * run < rows ? (i + 1) * run : rows); };
  if (rows * width < 65536) {
    for (Index i = 0; i < runs; ++i) one(i);
  } else {
    parallel_for(runs, one);
  }
}

/// The sum of what add(first, last, partial) adds to partial sums of `width` numbers for runs of
/// rows; the runs are fixed and their sums added in order, so that threads decide no bit.
template <Scalar T, class Add>
Tensor<T, 1> sum_row_runs(Index rows, Index width, const Add& add) {
  constexpr Index run = 128;
  const Index runs = (rows + run - 1) / run;
  Tensor<T, 2> partial({runs, width});
  const auto one = [&](Index i) {
    add(i * run, (i + 1) * run < rows ? (i + 1) * run : rows, partial.data() + i * width);
  };
  if (rows * width < 65536) {
    for (Index i = 0; i < runs; ++i) one(i);
  } else {
    parallel_for(runs, one);
  }
  Tensor<T, 1> sum({width});
  const auto& kernels = simd::row_kernels<T>();
  for (Index i = 0; i < runs; ++i) kernels.add(partial.data() + i * width, sum.data(), width);
  return sum;
}

}  // namespace heed::detail
