// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>

#if HEED_DEFINITIONS
#include <cstdio>
#include <cstdlib>
#include <span>
#endif

namespace heed::detail {

/// Something that stands in an error message: a text, a character, a number, or a range of such.
/// Refers to its text or range. One type for all of them, so that a message costs its caller an
/// array of these and no code of its own.
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

/// The parts one after another, as one string.
__attribute__((cold)) std::string joined(std::initializer_list<MessagePart> parts);

template <class... Parts>
std::string message(const Parts&... parts) {
  return joined({MessagePart(parts)...});
}

}  // namespace heed::detail

#if HEED_DEFINITIONS
// Defined in one unit of heed::compiled, inline everywhere else.
// NOLINTBEGIN(misc-definitions-in-headers)
namespace heed::detail {

/// A number as a person writes it, with the fewest digits that tell it from its neighbors: 2, 0.1,
/// 1000000, 1e-06. Returns how many characters it wrote, of less than 32.
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

}  // namespace heed::detail
// NOLINTEND(misc-definitions-in-headers)
#endif
