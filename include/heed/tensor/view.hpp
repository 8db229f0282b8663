// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

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

}  // namespace detail

/// A rectangular window on someone else's values: pointer, extents and strides, nothing owned.
/// Any stride is legal: 0 (broadcast), negative (reversed), non-unit in the last axis. The words
/// are those of std::mdspan; strides count elements. `TensorView<const T, Rank>` only reads.
template <class T, std::size_t Rank>
class TensorView {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  /// A view of nothing: no memory, every extent 0.
  constexpr TensorView() = default;

  /// Row-major values at `data`.
  TensorView(T* data, const Extents<Rank>& extents)
      : data_(data), extents_(extents), strides_(detail::row_major_strides<Rank>(extents)) {}

  /// Values at `data`, element (i, j, …) at `data[i * strides[0] + j * strides[1] + …]`.
  TensorView(T* data, const Extents<Rank>& extents, const Extents<Rank>& strides)
      : data_(data), extents_(extents), strides_(strides) {
    check_reach();
  }

  /// A run of values as a vector.
  TensorView(std::span<T> values)  // NOLINT(google-explicit-constructor): spans are rank-1 views
      requires(Rank == 1)
      : TensorView(values.data(), {static_cast<Index>(values.size())}) {}

  /// A view that writes is also a view that reads.
  template <class U>
  requires(std::is_const_v<T>&& std::is_same_v<U, value_type>)
      TensorView(const TensorView<U, Rank>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data_handle()), extents_(other.extents()), strides_(other.strides()) {}

  static constexpr std::size_t rank() { return Rank; }
  T* data_handle() const { return data_; }
  const Extents<Rank>& extents() const { return extents_; }
  const Extents<Rank>& strides() const { return strides_; }
  Index extent(std::size_t axis) const { return extents_[axis]; }
  Index stride(std::size_t axis) const { return strides_[axis]; }

  Index size() const {
    Index count = 1;
    for (const Index extent : extents_) count *= extent;
    return count;
  }
  bool empty() const { return size() == 0; }

  /// Element access; indices are checked in debug and sanitizer builds.
  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) == Rank) T& operator()(Indices... indices) const {
    const Extents<Rank> at{static_cast<Index>(indices)...};
    return data_[offset(at)];
  }
  T& operator[](Index index) const requires(Rank == 1) { return (*this)(index); }

  /// Elements `begin, begin + step, …` below `end` of one axis.
  TensorView slice(std::size_t axis, Index begin, Index end, Index step = 1) const {
    check_axis(axis);
    if (begin < 0 || end < begin || end > extents_[axis] || step < 1) {
      throw_shape_error("slice: [", begin, ", ", end, ") in steps of ", step, " of axis ", axis,
                        " with extent ", extents_[axis]);
    }
    TensorView result = *this;
    if (begin < end) result.data_ += begin * strides_[axis];
    result.extents_[axis] = (end - begin + step - 1) / step;
    result.strides_[axis] *= step;
    return result;
  }

  /// Axes in another order: axis `i` of the result is axis `order[i]` of this.
  TensorView permute(const Extents<Rank>& order) const {
    TensorView result = *this;
    std::array<bool, Rank> seen{};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      const auto from = static_cast<std::size_t>(order[axis]);
      if (order[axis] < 0 || from >= Rank || seen[from]) {
        throw_shape_error("permute: ", order, " is no permutation of ", Rank, " axes");
      }
      seen[from] = true;
      result.extents_[axis] = extents_[from];
      result.strides_[axis] = strides_[from];
    }
    return result;
  }

  /// One axis back to front.
  TensorView reverse(std::size_t axis) const {
    check_axis(axis);
    TensorView result = *this;
    if (extents_[axis] > 0) result.data_ += (extents_[axis] - 1) * strides_[axis];
    result.strides_[axis] = -strides_[axis];
    return result;
  }

  /// An axis of extent 1 repeated `extent` times without copying (stride 0).
  TensorView broadcast(std::size_t axis, Index extent) const {
    check_axis(axis);
    if (extents_[axis] != 1 || extent < 0) {
      throw_shape_error("broadcast: axis ", axis, " of ", extents_, " to ", extent,
                        "; only an axis of extent 1 can be repeated");
    }
    TensorView result = *this;
    result.extents_[axis] = extent;
    result.strides_[axis] = 0;
    return result;
  }

  /// One axis as two: `inner` consecutive elements become the new axis `axis + 1`.
  TensorView<T, Rank + 1> split(std::size_t axis, Index inner) const {
    check_axis(axis);
    if (inner < 1 || extents_[axis] % inner != 0) {
      throw_shape_error("split: axis ", axis, " of ", extents_, " does not divide by ", inner);
    }
    Extents<Rank + 1> extents{};
    Extents<Rank + 1> strides{};
    for (std::size_t from = 0, to = 0; from < Rank; ++from, ++to) {
      extents[to] = extents_[from];
      strides[to] = strides_[from];
      if (from == axis) {
        extents[to] = extents_[axis] / inner;
        strides[to] = strides_[axis] * inner;
        ++to;
        extents[to] = inner;
        strides[to] = strides_[axis];
      }
    }
    return {data_, extents, strides};
  }

  /// The sub-view at one index of one axis, which disappears.
  TensorView<T, Rank - 1> select(std::size_t axis, Index index) const requires(Rank > 1) {
    check_axis(axis);
    if (index < 0 || index >= extents_[axis]) {
      throw_shape_error("select: index ", index, " of axis ", axis, " with extent ",
                        extents_[axis]);
    }
    Extents<Rank - 1> extents{};
    Extents<Rank - 1> strides{};
    for (std::size_t from = 0, to = 0; from < Rank; ++from) {
      if (from == axis) continue;
      extents[to] = extents_[from];
      strides[to++] = strides_[from];
    }
    return {data_ + index * strides_[axis], extents, strides};
  }

  /// The same values behind a new leading axis of extent 1.
  TensorView<T, Rank + 1> with_leading_axis() const {
    Extents<Rank + 1> extents{1};
    Extents<Rank + 1> strides{};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      extents[axis + 1] = extents_[axis];
      strides[axis + 1] = strides_[axis];
    }
    return {data_, extents, strides};
  }

 private:
  template <class, std::size_t>
  friend class TensorView;

  Index offset(const Extents<Rank>& at) const {
    Index sum = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      HEED_EXPECTS(at[axis] >= 0 && at[axis] < extents_[axis]);
      sum += at[axis] * strides_[axis];
    }
    return sum;
  }
  void check_axis(std::size_t axis) const {
    if (axis >= Rank) throw_shape_error("view: axis ", axis, " of a view of rank ", Rank);
  }
  /// Refuses extents and strides whose farthest element lies beyond what an Index of bytes reaches.
  void check_reach() const {
    detail::row_major_strides<Rank>(extents_);  // the element count fits
    Index low = 0, high = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      if (extents_[axis] == 0) return;
      Index reach = 0;
      Index& side = strides_[axis] < 0 ? low : high;
      if (__builtin_mul_overflow(extents_[axis] - 1, strides_[axis], &reach) ||
          __builtin_add_overflow(side, reach, &side)) {
        throw_shape_error("view: strides ", strides_, " of extents ", extents_,
                          " reach beyond what an Index can count");
      }
    }
    Index bytes = 0;
    const auto width = static_cast<Index>(sizeof(T));
    if (__builtin_mul_overflow(low, width, &bytes) || __builtin_mul_overflow(high, width, &bytes)) {
      throw_shape_error("view: strides ", strides_, " of extents ", extents_,
                        " reach beyond the address space");
    }
  }

  T* data_ = nullptr;
  Extents<Rank> extents_{};
  Extents<Rank> strides_{};
};

}  // namespace heed
