// SPDX-License-Identifier: MIT
#pragma once

#include <new>
#include <utility>

#include <heed/core/config.hpp>
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

/// Things of which each is made once, by the first that needs it, on any thread.
class MadeOnce {
 public:
  explicit MadeOnce(Index count) : count_(count) {}

  Index count() const { return count_; }
  /// Takes its memory from a Carver; `forget` makes it usable.
  template <class Carver>
  void take_states(Carver& carver) {
    states_ = carver.template take<State>(count_);
  }
  void forget() {
    for (Index i = 0; i < count_; ++i) {
      new (states_ + i) State{Atomic<bool>(false), Atomic<bool>(false), false};
    }
  }
  /// Whether thing `index` is made, by make() now if nobody has begun to; `answer` is then what
  /// that answered. False, so that nobody waits, while another thread makes it.
  template <class Make>
  bool has(Index index, bool& answer, const Make& make) const {
    State& state = states_[index];
    if (!state.ready.load()) {
      if (state.taken.exchange(true)) return false;
      state.answer = make();
      state.ready.store(true);
    }
    answer = state.answer;
    return true;
  }

 private:
  struct State {
    Atomic<bool> taken, ready;
    bool answer;
  };
  Index count_;
  State* states_ = nullptr;
};

/// What the copies of a Shared have in common. It knows how to delete the value, so that a program
/// compiles that where values are made, and not wherever a copy is destroyed.
struct SharedUsers {
  Atomic<Index> count{1};
  const void* value;
  void (*destroy)(const void* value);
};

/// One user less; the last one deletes the value. Cold keeps it from being inlined: g++ warns of
/// noinline on an inline function.
__attribute__((cold)) void leave(SharedUsers* users) noexcept;

/// An immutable value shared by its copies and deleted with the last one, or no value. Makes masks
/// with arrays (`a & b` copies both) and files cheap to copy; a std::shared_ptr without <memory>.
template <class T>
class Shared {
 public:
  Shared() = default;
  /// Takes ownership of `owned`, which must come from new; it is deleted as an Owned.
  template <class Owned>
  explicit Shared(const Owned* owned) : value_(owned), users_(make_users(owned)) {}
  Shared(const Shared& other) noexcept : value_(other.value_), users_(other.users_) {
    if (users_ != nullptr) users_->count.fetch_add(1);
  }
  Shared& operator=(const Shared& other) noexcept {  // NOLINT: copy and swap
    Shared copy(other);
    std::swap(value_, copy.value_);
    std::swap(users_, copy.users_);
    return *this;
  }
  ~Shared() {
    if (users_ != nullptr) leave(users_);
  }

  explicit operator bool() const { return value_ != nullptr; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_; }

 private:
  template <class Owned>
  static SharedUsers* make_users(const Owned* owned) {
    OnFailure without([&] { delete owned; });
    auto* users = new SharedUsers{.value = owned, .destroy = [](const void* value) {
                                    delete static_cast<const Owned*>(value);
                                  }};
    without.done();
    return users;
  }

  const T* value_ = nullptr;
  SharedUsers* users_ = nullptr;
};

#if HEED_DEFINITIONS
// NOLINTBEGIN(misc-definitions-in-headers)
HEED_INLINE void leave(SharedUsers* users) noexcept {
  if (users->count.fetch_add(-1) != 1) return;
  users->destroy(users->value);
  delete users;
}
// NOLINTEND(misc-definitions-in-headers)
#endif

}  // namespace heed::detail
