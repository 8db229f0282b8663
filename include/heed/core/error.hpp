// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// A wrong shape or value at a public call. Thrown before the first write; the message says
/// which argument, what came and what was expected: `attention: keys have 12 tokens, values 10`.
class ShapeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

namespace detail {

inline void append(std::string& message, std::string_view part) { message += part; }
inline void append(std::string& message, char part) { message += part; }
template <std::integral I>
void append(std::string& message, I part) {
  message += std::to_string(part);
}
template <std::floating_point F>
void append(std::string& message, F part) {
  message += std::to_string(part);
}
/// Extents print as `(2, 4, 10, 64)`.
template <class Range>
requires requires(const Range& range) {
  range.begin() != range.end();
} &&(!std::convertible_to<const Range&, std::string_view>)void append(std::string& message,
                                                                      const Range& extents) {
  message += '(';
  bool first = true;
  for (const auto& extent : extents) {
    if (!first) message += ", ";
    first = false;
    append(message, extent);
  }
  message += ')';
}

/// The parts one after another, as one string.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::string text;
  (append(text, parts), ...);
  return text;
}

}  // namespace detail

/// Throws ShapeError with the parts put together as its message.
template <class... Parts>
[[noreturn]] void throw_shape_error(const Parts&... parts) {
  throw ShapeError(detail::message(parts...));
}

}  // namespace heed
