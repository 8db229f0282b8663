// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <heed/tensor/view.hpp>

namespace heed::detail {

/// Calls visit(at) for every index of all axes but the last, in row-major order; at[last] is 0.
/// Rows of length 0 are visited too.
template <std::size_t Rank, class Visit>
void for_each_row(const Extents<Rank>& extents, Visit&& visit) {
  Extents<Rank> leading = extents;
  leading[Rank - 1] = 1;
  for (const Index extent : leading) {
    if (extent == 0) return;
  }
  Extents<Rank> at{};
  for (;;) {
    visit(static_cast<const Extents<Rank>&>(at));
    std::size_t axis = Rank - 1;
    while (axis > 0 && ++at[axis - 1] == leading[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

/// The last axis of a view, at one index of the other axes.
template <class T, std::size_t Rank>
TensorView<T, 1> row_at(const TensorView<T, Rank>& view, const Extents<Rank>& at) {
  constexpr std::size_t last = Rank - 1;
  T* data = view.data_handle();
  if (view.extent(last) > 0) {
    for (std::size_t axis = 0; axis < last; ++axis) data += at[axis] * view.stride(axis);
  }
  return {data, {view.extent(last)}, {view.stride(last)}};
}

}  // namespace heed::detail
