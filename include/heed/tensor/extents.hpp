// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// How many elements along each axis; strides and indices have the same form.
template <std::size_t Rank>
using Extents = std::array<Index, Rank>;

namespace detail {

/// Row-major strides of `extents`, in elements. Throws ShapeError on a negative extent or when the
/// number of elements does not fit into an Index.
template <std::size_t Rank>
Extents<Rank> row_major_strides(const Extents<Rank>& extents) {
  Extents<Rank> strides{};
  Index step = 1;
  bool empty = false;
  for (const Index extent : extents) {
    if (extent < 0) throw_shape_error("tensor: extents ", extents, " must not be negative");
    empty = empty || extent == 0;
  }
  for (std::size_t axis = Rank; axis-- > 0;) {
    strides[axis] = step;
    if (!empty && __builtin_mul_overflow(step, extents[axis], &step)) {
      throw_shape_error("tensor: extents ", extents, " hold more elements than an Index counts");
    }
  }
  return strides;
}

/// How many elements these extents hold; the other extents do not matter when one is 0.
template <std::size_t Rank>
Index element_count(const Extents<Rank>& extents) {
  Index count = 1;
  for (const Index extent : extents) {
    if (extent == 0) return 0;
  }
  for (const Index extent : extents) count *= extent;
  return count;
}

}  // namespace detail

}  // namespace heed
