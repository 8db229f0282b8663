// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <utility>

namespace heed {

template <class Signature>
class FunctionRef;

/// A reference to a callable: two pointers, no allocation. The callable must outlive the
/// reference; a temporary lambda in an argument list lives long enough. (After std::function_ref,
/// P0792.)
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(F&& callable)  // NOLINT: a lambda converts silently
      : object_(const_cast<void*>(
            reinterpret_cast<const volatile void*>(__builtin_addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return (*reinterpret_cast<std::remove_reference_t<F>*>(object))(
              std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

namespace detail {

/// The listener where none is given.
struct Silent {
  template <class What>
  void operator()(const What&) const {}
};

/// Tells a listener of something; false where it answers that a loop shall end.
template <class Listener, class What>
bool goes_on(Listener& listener, const What& what) {
  using Answer = std::remove_cvref_t<std::invoke_result_t<Listener&, const What&>>;
  static_assert(std::is_void_v<Answer> || std::is_same_v<Answer, bool>,
                "a listener answers nothing, or a bool: false ends the loop");
  if constexpr (std::is_void_v<Answer>) {
    listener(what);
    return true;
  } else {
    return listener(what);
  }
}

}  // namespace detail

}  // namespace heed
