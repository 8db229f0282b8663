// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

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

}  // namespace heed
