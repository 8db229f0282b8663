// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <heed/tensor/layout.hpp>  // for programs that include <heed/attention.hpp> alone
#include <heed/tensor/view.hpp>

namespace heed {

namespace detail {

/// The addresses [begin, end) that span the first and last byte of a view. All of its bytes lie in
/// runs of `run` bytes that begin at `begin` and every `step` bytes after it, as those of some
/// columns of a matrix do; a step of 0: the view has no such gaps.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uintptr_t step = 0;
  std::uintptr_t run = 0;
};

inline std::uintptr_t distance_of(Index stride) {
  return stride < 0 ? -static_cast<std::uintptr_t>(stride) : static_cast<std::uintptr_t>(stride);
}

/// Makes `step`, in elements, the step of a range if it is one, and the smallest so far.
template <std::size_t Rank>
void find_runs(const Extents<Rank>& extents, const Extents<Rank>& strides, std::uintptr_t step,
               std::size_t size, ByteRange& range) {
  std::uintptr_t reach = 0;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    const auto each = distance_of(strides[axis]);
    if (extents[axis] == 1 || each % step == 0) continue;
    reach += static_cast<std::uintptr_t>(extents[axis] - 1) * each;
  }
  if (reach + 1 >= step || (range.step != 0 && range.step <= step * size)) return;
  range.step = step * size;
  range.run = (reach + 1) * size;
}

/// The range of a view of elements of `size` bytes.
template <std::size_t Rank>
ByteRange byte_range(const void* data, const Extents<Rank>& extents, const Extents<Rank>& strides,
                     std::size_t size) {
  const Index count = element_count(extents);
  if (count == 0) return {};
  Index low = 0, high = 0;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    const Index reach = (extents[axis] - 1) * strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(data);
  const auto width = static_cast<Index>(size);
  ByteRange range{base + static_cast<std::uintptr_t>(low * width),
                  base + static_cast<std::uintptr_t>(high * width) + size};
  if (high - low < count) return range;  // no gaps
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    if (extents[axis] == 1 || strides[axis] == 0) continue;
    find_runs(extents, strides, distance_of(strides[axis]), size, range);
  }
  return range;
}
template <class T, std::size_t Rank>
ByteRange byte_range(const TensorView<T, Rank>& view) {
  return byte_range(view.data_handle(), view.extents(), view.strides(), sizeof(T));
}

inline bool meet(const ByteRange& a, const ByteRange& b) {
  if (a.begin >= b.end || b.begin >= a.end || a.begin == a.end || b.begin == b.end) return false;
  if (a.step == 0 || a.step != b.step) return true;
  const auto begin = b.begin >= a.begin ? (b.begin - a.begin) % a.step
                                        : a.step - 1 - (a.begin - b.begin - 1) % a.step;
  return begin < a.run || begin + b.run > a.step;
}

template <std::size_t Rank>
bool has_internal_overlap(const Extents<Rank>& extents, const Extents<Rank>& strides) {
  if (element_count(extents) == 0) return false;
  // Axes in order of step size: each step must exceed the reach of all smaller ones.
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

/// Whether two views may share memory: their address ranges intersect. Different columns of one
/// matrix do not overlap, nor do views without elements; views that interleave in another way count
/// as overlapping.
template <class A, std::size_t RankA, class B, std::size_t RankB>
bool overlaps(const TensorView<A, RankA>& a, const TensorView<B, RankB>& b) {
  return detail::meet(detail::byte_range(a), detail::byte_range(b));
}

/// Whether two indices of one view may name the same element, as with a stride of 0. Such a view
/// can be read but not written. Exact for views whose axes nest, as do slices, permutations and
/// reversals of contiguous memory; others count as overlapping.
template <class T, std::size_t Rank>
bool has_internal_overlap(const TensorView<T, Rank>& view) {
  return detail::has_internal_overlap(view.extents(), view.strides());
}

}  // namespace heed
