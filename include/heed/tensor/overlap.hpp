// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <heed/tensor/view.hpp>

namespace heed {

namespace detail {

/// The addresses [begin, end) between the first and the last byte a view can reach.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// The same of elements of `size` bytes.
template <std::size_t Rank>
ByteRange byte_range(const void* data, const Extents<Rank>& extents, const Extents<Rank>& strides,
                     std::size_t size) {
  if (element_count(extents) == 0) return {};
  Index low = 0, high = 0;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    const Index reach = (extents[axis] - 1) * strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(data);
  const auto width = static_cast<Index>(size);
  return {base + static_cast<std::uintptr_t>(low * width),
          base + static_cast<std::uintptr_t>(high * width) + size};
}
template <class T, std::size_t Rank>
ByteRange byte_range(const TensorView<T, Rank>& view) {
  return byte_range(view.data_handle(), view.extents(), view.strides(), sizeof(T));
}

inline bool meet(const ByteRange& a, const ByteRange& b) {
  return a.begin < b.end && b.begin < a.end && a.begin != a.end && b.begin != b.end;
}

}  // namespace detail

/// Whether two views may share memory: the ranges of addresses they span intersect. Views that
/// interleave without meeting (even and odd columns of one matrix) count as overlapping; views
/// without elements overlap nothing.
template <class A, std::size_t RankA, class B, std::size_t RankB>
bool overlaps(const TensorView<A, RankA>& a, const TensorView<B, RankB>& b) {
  return detail::meet(detail::byte_range(a), detail::byte_range(b));
}

namespace detail {

template <std::size_t Rank>
bool has_internal_overlap(const Extents<Rank>& extents, const Extents<Rank>& strides) {
  if (element_count(extents) == 0) return false;
  // Axes from the smallest step up: each must step over all that those before it reach.
  std::array<bool, Rank> done{};
  Index reach = 0;
  for (std::size_t round = 0; round < Rank; ++round) {
    std::size_t next = Rank;
    Index step = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      if (done[axis] || extents[axis] == 1) continue;
      const Index size = strides[axis] < 0 ? -strides[axis] : strides[axis];
      if (next < Rank && size >= step) continue;
      next = axis;
      step = size;
    }
    if (next == Rank) return false;
    if (step <= reach) return true;
    reach += (extents[next] - 1) * step;
    done[next] = true;
  }
  return false;
}

}  // namespace detail

/// Whether two indices of one view may name the same element, as with a stride of 0. Such a view
/// can be read but not written. Exact for views whose axes nest, which slices, permutations and
/// reversals of contiguous memory do; others count as overlapping.
template <class T, std::size_t Rank>
bool has_internal_overlap(const TensorView<T, Rank>& view) {
  return detail::has_internal_overlap(view.extents(), view.strides());
}

}  // namespace heed
