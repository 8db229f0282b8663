// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

namespace detail {
template <class N>
concept ExtentNumber = std::is_integral_v<N> && !std::is_same_v<N, bool>;
}  // namespace detail

/// The number of elements along each axis; strides and indices have the same type. Derived from
/// std::array so that argument-dependent lookup finds the functions of this namespace.
template <std::size_t Rank>
struct Extents : std::array<Index, Rank> {
  Extents() = default;
  /// Numbers of any types, one for each axis: `{1, ids.size()}`.
  template <detail::ExtentNumber... Numbers>
  requires(sizeof...(Numbers) == Rank && Rank > 0)  //
      constexpr Extents(Numbers... numbers)         // NOLINT
      : std::array<Index, Rank>{static_cast<Index>(numbers)...} {}
  template <detail::ExtentNumber Number>
  constexpr Extents(const std::array<Number, Rank>& numbers) : Extents() {  // NOLINT
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      (*this)[axis] = static_cast<Index>(numbers[axis]);
    }
  }
};

}  // namespace heed

// `const auto [rows, columns] = matrix.extents();`
template <std::size_t Rank>
struct std::tuple_size<heed::Extents<Rank>> : std::integral_constant<std::size_t, Rank> {};
template <std::size_t I, std::size_t Rank>
struct std::tuple_element<I, heed::Extents<Rank>> {
  using type = heed::Index;
};

namespace heed {

namespace detail {

/// What integers of all types become in a list in braces without being narrowed: `{1, ids.size()}`
/// is no list of Index. An array of it tells its length, and is preferred to what is made of it.
__extension__ typedef __int128 ListedExtent;  // NOLINT: `using` would be warned of

/// Extents or strides from a list in braces, which has one number for each axis.
template <std::size_t Rank, std::size_t Count>
Extents<Rank> listed(const ListedExtent (&numbers)[Count]) {
  static_assert(Count >= Rank, "the list is too short: it has one number for each axis");
  static_assert(Count <= Rank, "the list is too long: it has one number for each axis");
  Extents<Rank> result{};
  for (std::size_t axis = 0; axis < Rank; ++axis) result[axis] = static_cast<Index>(numbers[axis]);
  return result;
}

/// Throws the ShapeError of an axis that does not exist.
[[noreturn]] __attribute__((cold)) void throw_axis(std::size_t axis, std::size_t rank);
inline std::size_t checked_axis(std::size_t axis, std::size_t rank) {
  if (axis >= rank) throw_axis(axis, rank);
  return axis;
}

/// Throws the ShapeError of extents that are negative, or of too many elements.
[[noreturn]] __attribute__((cold)) void throw_extents(const Index* extents, std::size_t rank);

/// Row-major strides of `extents`, in elements. Throws ShapeError for a negative extent, and if the
/// number of elements does not fit into an Index.
template <std::size_t Rank>
Extents<Rank> row_major_strides(const Extents<Rank>& extents) {
  Extents<Rank> strides{};
  Index step = 1;
  bool empty = false, fits = true;
  for (const Index extent : extents) {
    fits = fits && extent >= 0;
    empty = empty || extent == 0;
  }
  for (std::size_t axis = Rank; axis-- > 0;) {
    strides[axis] = step;
    fits = fits && (empty || !__builtin_mul_overflow(step, extents[axis], &step));
  }
  if (!fits) throw_extents(extents.data(), Rank);
  return strides;
}

/// The number of elements; 0 if any extent is 0, whatever the others are.
template <std::size_t Rank>
Index element_count(const Extents<Rank>& extents) {
  Index count = 1;
  for (const Index extent : extents) {
    if (extent == 0) return 0;
  }
  for (const Index extent : extents) count *= extent;
  return count;
}

/// The extents with another one along `axis`, or with another width.
template <std::size_t Rank>
Extents<Rank> with_extent(Extents<Rank> extents, std::size_t axis, Index extent) {
  extents[axis] = extent;
  return extents;
}
template <std::size_t Rank>
Extents<Rank> with_width(const Extents<Rank>& extents, Index width) {
  return with_extent(extents, Rank - 1, width);
}

/// Refuses extents and strides that span more bytes than an Index counts; row_major_strides has
/// accepted the extents. Accepted views can be sliced, reversed, selected and split without
/// overflow.
__attribute__((cold)) void check_reach(const Index* extents, const Index* strides, std::size_t rank,
                                       std::size_t bytes);

}  // namespace detail

}  // namespace heed

#if HEED_DEFINITIONS
// NOLINTBEGIN(misc-definitions-in-headers)

namespace heed::detail {

HEED_INLINE void throw_axis(std::size_t axis, std::size_t rank) {
  throw_shape_error("axis ", static_cast<Index>(axis), " of rank ", rank, "; axes count from 0");
}

HEED_INLINE void throw_extents(const Index* extents, std::size_t rank) {
  const std::span<const Index> all(extents, rank);
  for (const Index extent : all) {
    if (extent < 0) throw_shape_error("extents ", all, " must not be negative");
  }
  throw_shape_error("extents ", all, " hold more elements than an Index counts");
}

HEED_INLINE void check_reach(const Index* extents, const Index* strides, std::size_t rank,
                             std::size_t bytes) {
  Index low = 0, high = 0, span = 0;
  bool fits = true;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (extents[axis] < 2) continue;
    Index reach = 0;
    Index& side = strides[axis] < 0 ? low : high;
    fits = fits && !__builtin_mul_overflow(extents[axis] - 1, strides[axis], &reach) &&
           !__builtin_add_overflow(side, reach, &side);
  }
  fits = fits && !__builtin_sub_overflow(high, low, &span) &&
         !__builtin_add_overflow(span, Index{1}, &span) &&
         !__builtin_mul_overflow(span, static_cast<Index>(bytes), &span);
  if (fits) return;
  throw_shape_error("view: strides ", std::span<const Index>(strides, rank), " of extents ",
                    std::span<const Index>(extents, rank), " span more bytes than an Index counts");
}

}  // namespace heed::detail
// NOLINTEND(misc-definitions-in-headers)
#endif
