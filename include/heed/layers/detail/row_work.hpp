// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/parallel.hpp>
#include <heed/core/scalar.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/layout.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed::detail {

/// (…, width) as (rows, width), which is how most layers see what they are given.
template <std::size_t Rank>
Extents<2> row_extents(const Extents<Rank>& extents) {
  Index rows = 1;
  for (std::size_t axis = 0; axis + 1 < Rank; ++axis) rows *= extents[axis];
  return {rows, extents[Rank - 1]};
}
template <class T, std::size_t Rank>
TensorView<T, 2> as_rows(Tensor<T, Rank>& x) {
  return {x.data(), row_extents(x.extents())};
}
template <class T, std::size_t Rank>
TensorView<const T, 2> as_rows(const Tensor<T, Rank>& x) {
  return {x.data(), row_extents(x.extents())};
}

/// Anything viewable as contiguous rows: row-major values where they lie, others as a copy.
template <Scalar T>
class Rows {
 public:
  template <Viewable X>
  explicit Rows(const X& x) {
    static_assert(std::is_same_v<ValueOf<const X>, T>,
                  "a layer takes the scalar type of its own weights");
    const TensorView<const T, ViewOf<const X>::rank()> view = view_of(x);
    if (is_row_major(view)) {
      rows_ = {view.data_handle(), row_extents(view.extents())};
    } else {
      copy_ =
          Tensor<T, ViewOf<const X>::rank()>::copy_of(view).reshaped(row_extents(view.extents()));
      rows_ = copy_;
    }
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  const TensorView<const T, 2>& view() const { return rows_; }

 private:
  Tensor<T, 2> copy_;
  TensorView<const T, 2> rows_;
};

/// A tensor with the values of x: x itself where it is a temporary tensor, else a copy.
template <Scalar T, class X>
auto owned(X&& x) {
  using Owned = Tensor<T, ViewOf<std::add_const_t<std::remove_reference_t<X>>>::rank()>;
  if constexpr (std::is_same_v<std::remove_cvref_t<X>, Owned>) {
    return Owned(std::forward<X>(x));
  } else {
    static_assert(std::is_same_v<ValueOf<std::remove_reference_t<X>>, T>,
                  "a layer takes the scalar type of its own weights");
    return Owned::copy_of(view_of(x));
  }
}
/// The same as rows.
template <Scalar T, class X>
Tensor<T, 2> owned_rows(X&& x) {
  auto tensor = owned<T>(std::forward<X>(x));
  const auto extents = row_extents(tensor.extents());
  return std::move(tensor).reshaped(extents);
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
