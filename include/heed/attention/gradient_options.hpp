// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// A rank-1 (queries) or rank-2 (heads, queries) view as rank 3 (batch, heads, queries).
template <class T, std::size_t Rank>
TensorView<T, 3> as_rank_3(const TensorView<T, Rank>& view) {
  static_assert(Rank >= 1 && Rank <= 3,
                "one value per query: a view of (batch, heads, queries), (heads, queries) or "
                "(queries)");
  if constexpr (Rank == 3) {
    return view;
  } else {
    return as_rank_3(view.with_leading_axis());
  }
}

}  // namespace detail

/// One value per query to be read, (batch, heads, queries); converts from everything `view_of`
/// understands, of rank 1 (queries) and 2 (heads, queries) too. Empty: not given.
template <class T>
class PerQueryInput {
 public:
  PerQueryInput() = default;
  template <Viewable X>
  requires std::same_as<ValueOf<const X>, T> PerQueryInput(const X& values)  // NOLINT
      : view_(detail::as_rank_3(view_of(values))), given_(true) {}
  template <class X>
  requires(detail::OwnsValues<X>&& std::same_as<ValueOf<const X>, T>)
      PerQueryInput(const X&&) {  // NOLINT
    static_assert(!Viewable<X>, "a view of temporary values dangles: give them a name first");
  }

  bool given() const { return given_; }
  const TensorView<const T, 3>& view() const { return view_; }

 private:
  TensorView<const T, 3> view_;
  bool given_ = false;
};

/// Where the gradient of a BiasView goes: of the bias's own extents, 1 where it holds for all.
/// Converts from views and tensors of the ranks a BiasView takes. Empty: not wanted.
template <class T>
class BiasGradientView {
 public:
  BiasGradientView() = default;
  BiasGradientView(TensorView<T, 4> view) : view_(view), given_(true) {}  // NOLINT
  template <std::size_t Rank>
  requires(Rank < 4) BiasGradientView(const TensorView<T, Rank>& view)  // NOLINT
      : BiasGradientView(view.with_leading_axis()) {}
  template <std::size_t Rank>
  BiasGradientView(Tensor<T, Rank>& tensor) : BiasGradientView(tensor.view()) {}  // NOLINT
  template <std::size_t Rank>
  BiasGradientView(const Tensor<T, Rank>&&) {  // NOLINT
    static_assert(Rank == 0, "a view of a temporary tensor dangles: give the tensor a name first");
  }

  bool given() const { return given_; }
  const TensorView<T, 4>& view() const { return view_; }

 private:
  TensorView<T, 4> view_;
  bool given_ = false;
};

/// What goes into attention_backward and comes out of it beside the gradients of output, queries,
/// keys and values. Every default is "none". What comes out is overwritten, has the shape of what
/// it belongs to in AttentionOptions, and is summed where that held for several scores.
template <class T>
struct GradientOptions {
  /// In: the gradient of the loss with respect to log_sum_exp, where the loss depends on it.
  PerQueryInput<T> grad_log_sum_exp = {};
  /// Out: the gradient of options.bias. Computes the scores once more.
  BiasGradientView<T> grad_bias = {};
  /// Out: the gradients of options.relative_bias and alibi_slopes. Compute the scores once more.
  TensorView<T, 2> grad_relative_bias = {};
  std::span<T> grad_alibi_slopes = {};
  /// Out: the gradient of options.sinks.
  std::span<T> grad_sinks = {};
};

}  // namespace heed
