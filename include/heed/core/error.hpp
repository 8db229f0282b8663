// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <stdexcept>

#include <heed/core/config.hpp>
#include <heed/core/detail/message_part.hpp>
#include <heed/core/index.hpp>

#if HEED_DEFINITIONS
#include <cstdio>
#endif

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

/// No memory for a tensor; the message has its extents and bytes. Made without memory of its own.
class OutOfMemory : public std::bad_alloc, public Error {
 public:
  OutOfMemory(std::span<const Index> extents, std::size_t element_bytes) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[160];
};

namespace detail {

[[noreturn]] void throw_invalid(std::initializer_list<MessagePart> parts);
[[noreturn]] void throw_shape(std::initializer_list<MessagePart> parts);
[[noreturn]] void throw_out_of_memory(std::span<const Index> extents, std::size_t element_bytes);

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
// Defined in one unit of heed::compiled, inline everywhere else.
// NOLINTBEGIN(misc-definitions-in-headers)
namespace heed {

__attribute__((cold)) HEED_INLINE OutOfMemory::OutOfMemory(std::span<const Index> extents,
                                                           std::size_t element_bytes) noexcept {
  std::size_t bytes = element_bytes, at = 0;
  bool countable = true;
  const auto add = [&](const char* text, unsigned long long number, const char* end) {
    const int length = std::snprintf(text_ + at, sizeof text_ - at, "%s%llu%s", text, number, end);
    const std::size_t end_of_text = at + static_cast<std::size_t>(length);
    at = end_of_text < sizeof text_ ? end_of_text : sizeof text_ - 1;
  };
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    add(axis == 0 ? "no memory for a tensor of (" : ", ",
        static_cast<unsigned long long>(extents[axis]), "");
    countable = countable && !__builtin_mul_overflow(bytes, extents[axis], &bytes);
  }
  add("): ", countable ? bytes : std::size_t{1} << 63, countable ? " bytes" : " bytes or more");
}

}  // namespace heed

namespace heed::detail {

[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_invalid(
    std::initializer_list<MessagePart> parts) {
  throw InvalidArgument(joined(parts));
}
[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_shape(
    std::initializer_list<MessagePart> parts) {
  throw ShapeError(joined(parts));
}
[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_out_of_memory(
    std::span<const Index> extents, std::size_t element_bytes) {
  throw OutOfMemory(extents, element_bytes);
}

}  // namespace heed::detail
// NOLINTEND(misc-definitions-in-headers)
#endif
