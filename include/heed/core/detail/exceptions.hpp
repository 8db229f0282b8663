// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

/// 1 unless the program is built with -fno-exceptions.
#if defined(__cpp_exceptions)
#define HEED_EXCEPTIONS 1
#else
#define HEED_EXCEPTIONS 0
#include <cstdio>
#include <cstdlib>
#endif

namespace heed {

/// Receives the message of an error, and must not return. A program built with -fno-exceptions has
/// one instead of exceptions; without one the message is printed to stderr and the program aborts.
using ErrorHandler = void (*)(const char* message);

namespace detail {
inline ErrorHandler& error_handler() {
  static ErrorHandler handler = nullptr;
  return handler;
}
#if !HEED_EXCEPTIONS
inline void print_error(const char* message) { std::fprintf(stderr, "%s\n", message); }
#endif
}  // namespace detail

/// Sets the handler and returns the one before; null stands for the default. Not for threads: set
/// it when the program starts. heed::compiled calls it too, whether it is built with exceptions or
/// not; where a handler returns, an exception follows, or the program aborts.
inline ErrorHandler set_error_handler(ErrorHandler handler) {
  const ErrorHandler before = std::exchange(detail::error_handler(), handler);
#if !HEED_EXCEPTIONS
  if (before == nullptr) return detail::print_error;
#endif
  return before;
}

namespace detail {

/// Throws an error, or hands it to the handler of a program without exceptions.
template <class E>
[[noreturn]] void raise(const E& error) {
  const ErrorHandler handler = error_handler();
#if HEED_EXCEPTIONS
  if (handler != nullptr) handler(error.what());
  throw error;
#else
  (handler != nullptr ? handler : print_error)(error.what());
  std::abort();
#endif
}

/// The result of body(); of handle(error) if it throws an E.
template <class E, class Body, class Handle>
auto handled(const Body& body, const Handle& handle) -> decltype(body()) {
#if HEED_EXCEPTIONS
  try {
    return body();
  } catch (const E& error) {
    return handle(error);
  }
#else
  static_cast<void>(handle);
  return body();
#endif
}

/// Calls undo() at the end of a scope that is not left by way of `done`.
template <class Undo>
class OnFailure {
 public:
  explicit OnFailure(Undo undo) : undo_(std::move(undo)) {}
  ~OnFailure() {
    if (!done_) undo_();
  }
  OnFailure(const OnFailure&) = delete;
  OnFailure& operator=(const OnFailure&) = delete;
  void done() { done_ = true; }

 private:
  Undo undo_;
  bool done_ = false;
};

}  // namespace detail
}  // namespace heed
