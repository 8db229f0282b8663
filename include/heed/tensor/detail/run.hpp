// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/tensor/extents.hpp>

namespace heed::detail {

/// A container of contiguous values: std::vector, std::array, std::span, a Tensor. Not an Eigen
/// matrix, which is column-major.
template <class X, class T = const volatile void>
concept HoldsRun = requires(X& x) {
  { x.data() } -> std::convertible_to<T*>;
  { x.size() } -> std::convertible_to<std::size_t>;
}
&&!requires(X & x) { x.rows(); };

template <class X>
using RunElement = std::remove_reference_t<decltype(*std::declval<X&>().data())>;

/// A type that allocates its values, like std::vector.
template <class T>
concept KeepsValuesElsewhere = requires {
  typename T::allocator_type;
};

/// The address of the first value. `Values` is deduced as by a forwarding reference, so that
/// temporaries that own their values are refused.
template <class Values>
auto* begin_of_run(std::remove_reference_t<Values>& values) {
  static_assert(!KeepsValuesElsewhere<RunElement<Values>>,
                "a vector of vectors is no tensor: flatten it, row behind row in one "
                "std::vector<float>, and pass heed::TensorView(flat, {rows, columns})");
  static_assert(std::is_lvalue_reference_v<Values> || std::ranges::enable_borrowed_range<Values>,
                "a view of temporary values dangles: give them a name first");
  return values.data();
}

/// Throws if `count` differs from the element count of the extents.
template <std::size_t Rank>
void check_run_fits(std::size_t count, const Extents<Rank>& extents) {
  if (static_cast<Index>(count) != element_count(extents)) {
    throw_shape_error("view: ", count, " values for extents ", extents);
  }
}
/// Throws if the strides, counted from the first value, leave `count` values.
template <std::size_t Rank>
void check_run_fits(std::size_t count, const Extents<Rank>& extents, const Extents<Rank>& strides) {
  if (element_count(extents) == 0) return;
  Index last = 0;
  bool inside = true;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    const Index reach = extents[axis] < 2 ? 0 : (extents[axis] - 1) * strides[axis];
    inside = inside && reach >= 0;
    last += reach;
  }
  if (!inside || last >= static_cast<Index>(count)) {
    throw_shape_error("view: strides ", strides, " of extents ", extents, " leave the ", count,
                      " values");
  }
}

}  // namespace heed::detail
