// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <heed/core/detail/atomic.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// A value that never changes and that copies share, or none; the last one deletes it. What makes
/// masks with arrays cheap to copy (`a & b` copies both) and files too, and std::shared_ptr without
/// <memory>.
template <class T>
class Shared {
 public:
  Shared() = default;
  /// Takes `owned`, made by new, which nobody else deletes.
  explicit Shared(const T* owned) : value_(owned), users_(make_users(owned)) {}
  Shared(const Shared& other) : value_(other.value_), users_(other.users_) {
    if (users_ != nullptr) users_->fetch_add(1);
  }
  Shared& operator=(const Shared& other) {  // NOLINT: copy and swap
    Shared copy(other);
    std::swap(value_, copy.value_);
    std::swap(users_, copy.users_);
    return *this;
  }
  ~Shared() {
    if (users_ == nullptr || users_->fetch_add(-1) != 1) return;
    delete value_;
    delete users_;
  }

  explicit operator bool() const { return value_ != nullptr; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_; }

 private:
  static Atomic<Index>* make_users(const T* owned) {
    try {
      return new Atomic<Index>(1);
    } catch (...) {
      delete owned;
      throw;
    }
  }

  const T* value_ = nullptr;
  Atomic<Index>* users_ = nullptr;
};

}  // namespace heed::detail
