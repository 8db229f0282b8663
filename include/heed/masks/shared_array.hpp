// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/shared.hpp>

namespace heed::detail {

/// An array that never changes and that copies share: what masks keep lengths, bits and layouts in.
template <class T>
class SharedArray {
 public:
  SharedArray(std::vector<T> values = {})  // NOLINT(google-explicit-constructor): becomes shared
      : values_(new std::vector<T>(std::move(values))),
        data_(values_->data()),
        size_(static_cast<Index>(values_->size())) {}

  Index size() const { return size_; }
  /// Whether `at` is an index of the array; a single comparison also for negative ones.
  bool has(Index at) const {
    return static_cast<std::size_t>(at) < static_cast<std::size_t>(size_);
  }
  const T& operator[](Index at) const { return data_[at]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  Shared<std::vector<T>> values_;
  const T* data_;
  Index size_;
};

}  // namespace heed::detail
