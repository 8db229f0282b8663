// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>

#include <heed/masks/detail/shared_array.hpp>

namespace heed {

/// A few numbers owned by options, one per head or per batch item. Converts from anything that
/// converts to a span and copies it, so the source need not outlive it. Copies share the numbers.
/// Empty: not given.
template <class T>
class OwnedArray {
 public:
  OwnedArray() = default;
  OwnedArray(std::initializer_list<T> values)  // NOLINT(google-explicit-constructor)
      : OwnedArray(std::span<const T>(values.begin(), values.size()), 0) {}
  template <class Values>
  requires(!std::same_as<Values, OwnedArray> &&
           std::is_convertible_v<const Values&, std::span<const T>>)
      OwnedArray(const Values& values)  // NOLINT(google-explicit-constructor): a list converts
      : OwnedArray(std::span<const T>(values), 0) {}

  /// Refers to `values`, which must outlive it and its copies: no copy, no allocation.
  static OwnedArray borrowed(std::span<const T> values) {
    OwnedArray array;
    array.data_ = values.data();
    array.size_ = values.size();
    return array;
  }

  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](std::size_t at) const { return data_[at]; }

 private:
  OwnedArray(std::span<const T> values, int) : size_(values.size()) {
    if (values.empty()) return;
    owned_ = detail::SharedArray<T>(values.data(), values.data() + values.size());
    data_ = owned_.data();
  }

  detail::SharedArray<T> owned_;
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace heed
