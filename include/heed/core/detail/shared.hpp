// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <heed/core/detail/exceptions.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// The operations of std::atomic that heed needs, sequentially consistent, without the compile time
/// of <atomic>.
template <class T>
class Atomic {
 public:
  constexpr explicit Atomic(T value) : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load() const { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
  void store(T value) { __atomic_store_n(&value_, value, __ATOMIC_SEQ_CST); }
  T exchange(T value) { return __atomic_exchange_n(&value_, value, __ATOMIC_SEQ_CST); }
  T fetch_add(T value) { return __atomic_fetch_add(&value_, value, __ATOMIC_SEQ_CST); }

 private:
  T value_;
};

/// An immutable value shared by its copies and deleted with the last one, or no value. Makes masks
/// with arrays (`a & b` copies both) and files cheap to copy; a std::shared_ptr without <memory>.
template <class T>
class Shared {
 public:
  Shared() = default;
  /// Takes ownership of `owned`, which must come from new.
  explicit Shared(const T* owned) : value_(owned), users_(make_users(owned)) {}
  Shared(const Shared& other) noexcept : value_(other.value_), users_(other.users_) {
    if (users_ != nullptr) users_->fetch_add(1);
  }
  Shared& operator=(const Shared& other) noexcept {  // NOLINT: copy and swap
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
    OnFailure without([&] { delete owned; });
    auto* users = new Atomic<Index>(1);
    without.done();
    return users;
  }

  const T* value_ = nullptr;
  Atomic<Index>* users_ = nullptr;
};

}  // namespace heed::detail
