// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/layout.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

// Tensors as the rows that layers work on, runs of rows for threads, and rows without a gradient.
namespace heed::detail {

/// (…, width) as (rows, width), the shape in which most layers see their input.
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

/// A layer that attends, or a block, is given something else than a batch.
template <class X, class Batch>
constexpr void expect_batch() {
  constexpr bool other_scalar = [] {
    if constexpr (!Viewable<const X>) return false;
    if constexpr (Viewable<const X>) {
      using Given = std::remove_const_t<ValueOf<const X>>;
      return std::is_floating_point_v<Given> && !std::is_same_v<Given, typename Batch::value_type>;
    }
  }();
  constexpr bool mask = !Viewable<const X> && LikeMask<X>;
  constexpr bool in_double = std::is_same_v<typename Batch::value_type, double>;
  static_assert(!mask, "the tokens come before the mask: layer.forward(x, mask)");
  static_assert(!other_scalar || in_double,
                "the tensor is of another scalar type than the layer: Tensor<float, 3>(x) converts "
                "one to float");
  static_assert(!other_scalar || !in_double,
                "the tensor is of another scalar type than the layer: Tensor<double, 3>(x) "
                "converts one to double");
  static_assert(mask || other_scalar || std::is_same_v<X, Batch>,
                "attention layers and blocks take a Tensor of (batch, tokens, dim): "
                "Tensor(x.view().with_leading_axis()) makes one of the matrix x");
}

/// A block is given something else than a mask behind the tokens.
template <class Given, class Saved>
constexpr void expect_layer_mask() {
  constexpr bool saved = std::is_same_v<Given, Saved>;
  static_assert(!saved, "what forward saves comes last: layer.forward(x, mask, saved)");
  if constexpr (!saved) expect_mask<Given>();
}

/// A layer is given what forward saved before the gradient of its output.
template <class... Given>
constexpr void expect_gradient_first() {
  static_assert(never<Given...>,
                "the gradient of the output comes first, and then what forward saved: "
                "layer.backward(grad, saved, gradients)");
}

/// A tensor that is given where a mask belongs: of bool, or of another rank than a batch.
template <class Given, class Batch>
concept TensorForMask = Viewable<const Given> &&
    (std::is_same_v<std::remove_const_t<ValueOf<const Given>>, bool> ||
     ViewOf<const Given>::rank() != Batch::rank());

/// Contiguous rows of anything viewable: row-major values where they lie, others as a copy.
template <class T>
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

/// The rows of a factor of products that are written in T.
template <ModelScalar T, Viewable X>
auto factor_rows(const X& x) {
  constexpr bool narrow = std::is_same_v<ValueOf<const X>, bfloat16> && std::is_same_v<T, float>;
  return Rows<std::conditional_t<narrow, bfloat16, T>>(x);
}

/// A tensor with the values of x: x itself where it is a temporary tensor, else a copy.
template <ModelScalar T, class X>
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
/// The same, as rows.
template <ModelScalar T, class X>
Tensor<T, 2> owned_rows(X&& x) {
  auto tensor = owned<T>(std::forward<X>(x));
  const auto extents = row_extents(tensor.extents());
  return std::move(tensor).reshaped(extents);
}

/// Calls visit(first, last) for runs of rows that together cover all rows, on several threads where
/// there is enough work for them.
template <Index run = 32, class Visit>
void for_row_runs(Index rows, Index width, const Visit& visit) {
  const Index runs = parts_of(rows, run);
  const auto one = [&](Index i) { visit(i * run, (i + 1) * run < rows ? (i + 1) * run : rows); };
  if (rows * width < 65536) {
    for (Index i = 0; i < runs; ++i) one(i);
  } else {
    parallel_for(runs, one);
  }
}

/// Numbers rounded to bfloat16. piece(at, count, space) returns where those from `at` on are, in
/// `space` perhaps.
template <ModelScalar T, std::size_t Rank, class Piece>
Tensor<bfloat16, Rank> narrowed(const Extents<Rank>& extents, const Piece& piece) {
  constexpr Index width = 1024;
  auto narrow = Tensor<bfloat16, Rank>::uninitialized(extents);
  for_row_runs<8>(parts_of(narrow.size(), width), 8 * width, [&](Index first, Index last) {
    T space[width];
    const Index end = std::min(last * width, narrow.size());
    for (Index at = first * width; at < end; at += width) {
      const Index count = std::min(width, end - at);
      simd::bfloat16_product_kernels<T>().narrow(piece(at, count, space), count,
                                                 &narrow.data()[at].bits);
    }
  });
  return narrow;
}

/// Sums over rows: add(first, last, partial) adds the rows of a run to `width` numbers. Runs are of
/// a fixed length and their sums are added in order, so the bits do not depend on threads.
template <ModelScalar T, class Add>
Tensor<T, 1> sum_row_runs(Index rows, Index width, const Add& add) {
  constexpr Index run = 128;
  Tensor<T, 2> partial({parts_of(rows, run), width});
  for_row_runs<run>(rows, width, [&](Index first, Index last) {
    add(first, last, partial.data() + first / run * width);
  });
  Tensor<T, 1> sum({width});
  const auto& kernels = simd::row_kernels<T>();
  for (Index i = 0; i < partial.extent(0); ++i) {
    kernels.add(partial.data() + i * width, sum.data(), width);
  }
  return sum;
}

// Padding in training: the loss does not read it, so the gradient of its rows is exactly 0. Such a
// row takes no part in any other gradient, whatever it holds, NaN too: 0 · NaN is never computed,
// or its result is thrown away. A live row is one whose gradient is not all 0.

template <class T>
bool all_zero(const T* row, Index width) {
  return std::all_of(row, row + width, [](T value) { return value == T{0}; });
}

/// The numbers of the rows that are not all 0. One comparison settles most rows.
template <class T>
std::vector<Index> live_rows(const TensorView<const T, 2>& grad) {
  std::vector<Index> live;
  for (Index row = 0; row < grad.extent(0); ++row) {
    if (!all_zero(&grad(row, 0), grad.extent(1))) live.push_back(row);
  }
  return live;
}

/// The rows of `from` with these numbers.
template <class T>
Tensor<T, 2> gathered(const TensorView<const T, 2>& from, const std::vector<Index>& rows) {
  const Index width = from.extent(1);
  auto some = Tensor<T, 2>::uninitialized({static_cast<Index>(rows.size()), width});
  T* to = some.data();
  for (const Index row : rows) to = std::copy_n(&from(row, 0), width, to);
  return some;
}

/// Throws for a gradient that does not fit what the forward pass left in `saved`.
template <std::size_t Rank, std::size_t SeenRank>
[[noreturn]] void refuse_gradient(const Extents<Rank>& grad, const Extents<SeenRank>& seen) {
  if (element_count(seen) == 0 && element_count(grad) > 0) {
    throw_shape_error("backward: a gradient of ", grad, ", but no forward pass filled `saved`; ",
                      "expected that of forward(x, saved)");
  }
  throw_shape_error("backward: a gradient of ", grad, " where forward saw ", seen);
}

/// Adds gradᵀ · x over the live rows to the gradient of a weight. Rows are contiguous.
template <ModelScalar T, class X>
void accumulate_weight(const TensorView<const T, 2>& grad, const TensorView<const X, 2>& x,
                       const TensorView<T, 2>& weight, Products products) {
  if (grad.extent(0) != x.extent(0)) {
    refuse_gradient(grad.extents(), x.extents());
  }
  if (grad.size() == 0) return;
  const ProductOptions<T> how{.accumulate = true, .products = products};
  const auto live = live_rows(grad);
  if (static_cast<Index>(live.size()) == grad.extent(0)) {
    matrix_product(grad.transpose(), x, weight, how);
  } else if (!live.empty()) {
    const auto grads = gathered(grad, live);
    const auto inputs = gathered(x, live);
    matrix_product(grads.view().transpose(), inputs, weight, how);
  }
}

/// Adds the sums of the columns of grad to the gradient of a bias.
template <ModelScalar T>
void accumulate_bias(const TensorView<const T, 2>& grad, const TensorView<T, 1>& bias) {
  const T one = 1;
  const TensorView<const T, 2> ones(&one, {1, grad.extent(0)}, {0, 0});
  matrix_product(ones, grad, bias.with_leading_axis(), {.accumulate = true});
}

/// out = a ⊙ b, except that rows of `a` that are 0 give 0, whatever b holds there; `out` may be
/// `a`. All three have one size, and their last axis is the width.
template <ModelScalar T, std::size_t A, std::size_t B, std::size_t Out>
void multiply_live(const Tensor<T, A>& a, const Tensor<T, B>& b, Tensor<T, Out>& out) {
  const Extents<2> extents = row_extents(a.extents());
  if (row_extents(b.extents()) != extents) refuse_gradient(a.extents(), b.extents());
  const Index width = extents[1];
  for_row_runs(extents[0], width, [&](Index first, Index last) {
    for (Index at = first * width; at < last * width; at += width) {
      if (all_zero(a.data() + at, width)) {
        std::fill_n(out.data() + at, width, T{0});
      } else {
        simd::row_kernels<T>().multiply(a.data() + at, b.data() + at, out.data() + at, width);
      }
    }
  });
}

/// The log-sum-exp (batch, heads, queries) for a backward pass, with −inf for queries whose row of
/// grad (batch, queries, dim) is 0: they then count as queries that saw no key.
template <ModelScalar T>
Tensor<T, 3> lse_of_live_queries(Tensor<T, 3> lse, const Tensor<T, 3>& grad) {
  const Index queries = grad.extent(1), width = grad.extent(2);
  if (lse.extent(0) != grad.extent(0) || lse.extent(2) != queries) {
    refuse_gradient(grad.extents(), Extents<3>{lse.extent(0), lse.extent(2), width});
  }
  for (Index row = 0; row < grad.extent(0) * queries; ++row) {
    if (!all_zero(grad.data() + row * width, width)) continue;
    for (Index head = 0; head < lse.extent(1); ++head) {
      lse(row / queries, head, row % queries) = -std::numeric_limits<T>::infinity();
    }
  }
  return lse;
}

}  // namespace heed::detail
