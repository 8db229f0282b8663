// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <initializer_list>

#include <heed/core/error.hpp>
#include <heed/tensor/extents.hpp>

namespace heed::detail {

/// Values as they are written: {{1, 2}, {3, 4}} of rank 2.
template <class T, std::size_t Rank>
struct NestedListOf {
  using Type = std::initializer_list<typename NestedListOf<T, Rank - 1>::Type>;
};
template <class T>
struct NestedListOf<T, 0> {
  using Type = T;
};
template <class T, std::size_t Rank>
using NestedList = typename NestedListOf<T, Rank>::Type;

/// The extents of a nested list, by its first rows.
template <std::size_t Rank, class List>
Extents<Rank> extents_of_list(const List& list) {
  Extents<Rank> extents{static_cast<Index>(list.size())};
  if constexpr (Rank > 1) {
    if (list.size() == 0) return extents;
    const auto inner = extents_of_list<Rank - 1>(*list.begin());
    for (std::size_t axis = 1; axis < Rank; ++axis) extents[axis] = inner[axis - 1];
  }
  return extents;
}

/// Writes the values row by row. Throws ShapeError for rows of different lengths.
template <class T, class List, std::size_t Rank>
T* write_list(const List& list, const Extents<Rank>& extents, std::size_t axis, T* to) {
  if (static_cast<Index>(list.size()) != extents[axis]) {
    throw_shape_error("tensor: a list of ", list.size(), " beside one of ", extents[axis],
                      " along axis ", axis,
                      "; lists of values must be equally long, extents with values go into "
                      "parentheses: ({2, 2}, {1, 2, 3, 4})");
  }
  for (const auto& item : list) {
    if constexpr (requires { item.begin(); }) {
      to = write_list(item, extents, axis + 1, to);
    } else {
      *to++ = item;
    }
  }
  return to;
}

}  // namespace heed::detail
