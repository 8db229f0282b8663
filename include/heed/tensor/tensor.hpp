// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <heed/tensor/view.hpp>

namespace heed {

/// A row-major array that owns its values, 64-byte aligned, zero at birth. A value type: copies
/// copy, moves move. Views of it die with it.
template <class T, std::size_t Rank>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "Tensor holds plain values (float, double, …)");

 public:
  using value_type = T;

  Tensor() = default;
  explicit Tensor(const Extents<Rank>& extents) : extents_(extents) {
    detail::row_major_strides<Rank>(extents);  // refuses negative and overflowing extents
    allocate();
    for (Index i = 0; i < size(); ++i) data_[i] = T{};
  }
  Tensor(const Tensor& other) : extents_(other.extents_) {
    allocate();
    for (Index i = 0; i < size(); ++i) data_[i] = other.data_[i];
  }
  Tensor(Tensor&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        extents_(std::exchange(other.extents_, Extents<Rank>{})) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(data_, other.data_);
    std::swap(extents_, other.extents_);
    return *this;
  }
  ~Tensor() { ::operator delete(data_, alignment); }

  /// The values of any view, copied into row-major order.
  static Tensor copy_of(const TensorView<const T, Rank>& source) {
    Tensor result(source.extents());
    Index to = 0;
    Extents<Rank> at{};
    for (Index left = source.size(); left > 0; --left) {
      Index from = 0;
      for (std::size_t axis = 0; axis < Rank; ++axis) from += at[axis] * source.stride(axis);
      result.data_[to++] = source.data_handle()[from];
      for (std::size_t axis = Rank; axis-- > 0 && ++at[axis] == source.extent(axis);) at[axis] = 0;
    }
    return result;
  }

  static constexpr std::size_t rank() { return Rank; }
  const Extents<Rank>& extents() const { return extents_; }
  Index extent(std::size_t axis) const { return extents_[axis]; }
  Index size() const {
    Index count = 1;
    for (const Index extent : extents_) count *= extent;
    return count;
  }
  bool empty() const { return size() == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size(); }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size(); }

  TensorView<T, Rank> view() { return {data_, extents_}; }
  TensorView<const T, Rank> view() const { return {data_, extents_}; }
  operator TensorView<T, Rank>() { return view(); }              // NOLINT
  operator TensorView<const T, Rank>() const { return view(); }  // NOLINT

  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) == Rank) T& operator()(Indices... indices) {
    return view()(indices...);
  }
  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) == Rank) const T& operator()(Indices... indices) const {
    return view()(indices...);
  }
  T& operator[](Index index) requires(Rank == 1) { return view()(index); }
  const T& operator[](Index index) const requires(Rank == 1) { return view()(index); }

 private:
  static constexpr std::align_val_t alignment{64};

  void allocate() {
    const auto count = static_cast<std::size_t>(size());
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_alloc();
    if (count > 0) data_ = static_cast<T*>(::operator new(count * sizeof(T), alignment));
  }

  T* data_ = nullptr;
  Extents<Rank> extents_{};
};

}  // namespace heed
