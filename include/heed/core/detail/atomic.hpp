// SPDX-License-Identifier: MIT
#pragma once

namespace heed::detail {

/// std::atomic's few operations that the thread pool needs, sequentially consistent, without the
/// compile time of <atomic>.
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

}  // namespace heed::detail
