// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <stdexcept>

#include <heed/core/config.hpp>
#include <heed/core/detail/message_part.hpp>

namespace heed {

/// What every error of heed is, beside the standard's: `catch (const heed::Error& error)`.
class Error {
 public:
  virtual const char* what() const noexcept = 0;

 protected:
  Error() = default;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() = default;
};

namespace detail {

/// An error of the standard's kind that is one of heed's too.
template <class Standard>
class ErrorAs : public Standard, public Error {
 public:
  using Standard::Standard;
  const char* what() const noexcept override { return Standard::what(); }
};

}  // namespace detail

/// A wrong value at a public call: a learning rate that is NaN, a token that no vocabulary has.
class InvalidArgument : public detail::ErrorAs<std::invalid_argument> {
 public:
  using ErrorAs::ErrorAs;
};

/// A wrong shape at a public call. Thrown before the first write; the message says which argument,
/// what came and what was expected: `attention: keys have 12 tokens, values 10`.
class ShapeError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

namespace detail {

[[noreturn]] void throw_invalid(std::initializer_list<MessagePart> parts);
[[noreturn]] void throw_shape(std::initializer_list<MessagePart> parts);

}  // namespace detail

/// Throws InvalidArgument with the parts put together as its message.
template <class... Parts>
[[noreturn]] __attribute__((cold)) void throw_invalid_argument(const Parts&... parts) {
  detail::throw_invalid({detail::MessagePart(parts)...});
}
/// Throws ShapeError likewise.
template <class... Parts>
[[noreturn]] __attribute__((cold)) void throw_shape_error(const Parts&... parts) {
  detail::throw_shape({detail::MessagePart(parts)...});
}

}  // namespace heed

#if HEED_DEFINITIONS
namespace heed::detail {

[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_invalid(
    std::initializer_list<MessagePart> parts) {
  throw InvalidArgument(joined(parts));
}
[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_shape(
    std::initializer_list<MessagePart> parts) {
  throw ShapeError(joined(parts));
}

}  // namespace heed::detail
#endif
