// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <heed/core/config.hpp>
#include <heed/core/detail/exceptions.hpp>
#include <heed/core/index.hpp>

#if HEED_DEFINITIONS
#include <cstdio>
#include <cstdlib>
#endif

namespace heed {

/// The common base of all errors of heed, beside the standard's classes: `catch (const heed::Error&
/// error)`.
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

/// A part of an error message: a text, a character, a number, or a range of these. References its
/// text or range. One type for all of them, so that a message costs its caller an array of these
/// and no code of its own.
class MessagePart {
 public:
  MessagePart(std::string_view text) : data_(text.data()), size_(text.size()) {}  // NOLINT
  MessagePart(const std::string& text) : MessagePart(std::string_view(text)) {}   // NOLINT
  MessagePart(const char* text) : MessagePart(std::string_view(text)) {}          // NOLINT
  MessagePart(char letter) : letter_(letter), kind_(Kind::letter) {}              // NOLINT
  template <std::integral I>
  MessagePart(I value)  // NOLINT
      : integer_(static_cast<unsigned long long>(value)),
        kind_(std::is_signed_v<I> ? Kind::integer : Kind::natural) {}
  MessagePart(double value) : real_(value), kind_(Kind::real) {}        // NOLINT
  MessagePart(float value) : real_(value), kind_(Kind::single_real) {}  // NOLINT
  /// Extents, which print as `(2, 4, 10, 64)`.
  template <class Range>
  requires requires(const Range& range) {
    { range.data() } -> std::convertible_to<const Index*>;
  }
  MessagePart(const Range& extents)  // NOLINT
      : data_(extents.data()), size_(extents.size()), kind_(Kind::extents) {}
  template <class Range>
  requires(
      !requires(const Range& range) {
        { range.data() } -> std::convertible_to<const Index*>;
      } &&
      !std::convertible_to<const Range&, std::string_view> &&
      requires(const Range& range) { range.begin() != range.end(); })
      MessagePart(const Range& range)  // NOLINT
      : data_(&range), append_(append_range<Range>), kind_(Kind::range) {}

  __attribute__((cold)) void append_to(std::string& message) const;

 private:
  enum class Kind { text, letter, integer, natural, real, single_real, extents, range };

  template <class Range>
  static void append_range(std::string& message, const void* range) {
    message += '(';
    bool first = true;
    for (const auto& element : *static_cast<const Range*>(range)) {
      if (!first) message += ", ";
      first = false;
      MessagePart(element).append_to(message);
    }
    message += ')';
  }

  union {
    const void* data_;
    unsigned long long integer_;
    double real_;
    char letter_;
  };
  union {
    std::size_t size_ = 0;
    void (*append_)(std::string&, const void*);
  };
  Kind kind_ = Kind::text;
};

/// The parts joined into one string.
__attribute__((cold)) std::string joined(std::initializer_list<MessagePart> parts);

template <class... Parts>
std::string message(const Parts&... parts) {
  return joined({MessagePart(parts)...});
}

/// A standard error that is also an Error.
template <class Standard>
class ErrorAs : public Standard, public Error {
 public:
  using Standard::Standard;
  const char* what() const noexcept override { return Standard::what(); }
};

inline namespace HEED_CONTAINERS {
[[noreturn]] void throw_invalid(std::initializer_list<MessagePart> parts);
[[noreturn]] void throw_shape(std::initializer_list<MessagePart> parts);
[[noreturn]] void throw_out_of_memory(std::span<const Index> extents, std::size_t element_bytes);
}  // namespace HEED_CONTAINERS

}  // namespace detail

/// An invalid value in a public call: a learning rate that is NaN, a token outside the vocabulary.
class InvalidArgument : public detail::ErrorAs<std::invalid_argument> {
 public:
  using ErrorAs::ErrorAs;
};

/// An invalid shape in a public call, or arguments that do not go together. Thrown before the
/// first write; a message about a shape names the argument, its shape and the expected one:
/// `attention: keys have 12 tokens, values 10`.
class ShapeError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// No memory for a tensor; the message has its extents and bytes. Needs no memory itself.
class OutOfMemory : public std::bad_alloc, public Error {
 public:
  OutOfMemory(std::span<const Index> extents, std::size_t element_bytes) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[160];
};

/// Throws InvalidArgument with a message made of the parts.
template <class... Parts>
[[noreturn]] __attribute__((cold)) void throw_invalid_argument(const Parts&... parts) {
  detail::throw_invalid({detail::MessagePart(parts)...});
}
/// Throws ShapeError with a message made of the parts.
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

/// Writes a number as a person would, with the fewest digits that identify it: 2, 0.1, 1000000,
/// 1e-06. Returns the number of characters, less than 32.
HEED_INLINE int write_number(char* text, double value, bool single) {
  constexpr double whole = 1e15;  // up to here, digits behind the point would be read as such
  if (value > -whole && value < whole &&
      value == static_cast<double>(static_cast<long long>(value))) {
    return std::snprintf(text, 32, "%.0f", value);
  }
  int length = 0;
  for (int digits = 1; digits <= 17; ++digits) {
    length = std::snprintf(text, 32, "%.*g", digits, value);
    const double read =
        single ? static_cast<double>(std::strtof(text, nullptr)) : std::strtod(text, nullptr);
    if (read == value) break;
  }
  for (int i = 0; i < length; ++i) {
    if (text[i] == ',') text[i] = '.';  // where the program's locale has commas
  }
  return length;
}

HEED_INLINE void MessagePart::append_to(std::string& message) const {
  char digits[32];
  int length = 0;
  if (kind_ == Kind::integer) {
    length = std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(integer_));
  } else if (kind_ == Kind::natural) {
    length = std::snprintf(digits, sizeof digits, "%llu", integer_);
  } else if (kind_ == Kind::real || kind_ == Kind::single_real) {
    length = write_number(digits, real_, kind_ == Kind::single_real);
  } else if (kind_ == Kind::letter) {
    digits[length++] = letter_;
  } else if (kind_ == Kind::text) {
    message.append(static_cast<const char*>(data_), size_);
  } else if (kind_ == Kind::extents) {
    const std::span<const Index> extents(static_cast<const Index*>(data_), size_);
    append_range<std::span<const Index>>(message, &extents);
  } else {
    append_(message, data_);
  }
  message.append(digits, static_cast<std::size_t>(length));
}

HEED_INLINE std::string joined(std::initializer_list<MessagePart> parts) {
  std::string text;
  for (const MessagePart& part : parts) part.append_to(text);
  return text;
}

[[noreturn]] __attribute__((cold)) HEED_INLINE void HEED_CONTAINERS::throw_invalid(
    std::initializer_list<MessagePart> parts) {
  raise(InvalidArgument(joined(parts)));
}
[[noreturn]] __attribute__((cold)) HEED_INLINE void HEED_CONTAINERS::throw_shape(
    std::initializer_list<MessagePart> parts) {
  raise(ShapeError(joined(parts)));
}
[[noreturn]] __attribute__((cold)) HEED_INLINE void HEED_CONTAINERS::throw_out_of_memory(
    std::span<const Index> extents, std::size_t element_bytes) {
  raise(OutOfMemory(extents, element_bytes));
}

}  // namespace heed::detail
// NOLINTEND(misc-definitions-in-headers)
#endif
