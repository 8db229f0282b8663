// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <stdexcept>

#include <heed/core/config.hpp>
#include <heed/core/detail/message_part.hpp>

namespace heed {

/// A wrong shape or value at a public call. Thrown before the first write; the message says
/// which argument, what came and what was expected: `attention: keys have 12 tokens, values 10`.
class ShapeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

namespace detail {

[[noreturn]] void throw_joined(std::initializer_list<MessagePart> parts);

}  // namespace detail

/// Throws ShapeError with the parts put together as its message.
template <class... Parts>
[[noreturn]] __attribute__((cold)) void throw_shape_error(const Parts&... parts) {
  detail::throw_joined({detail::MessagePart(parts)...});
}

}  // namespace heed

#if HEED_DEFINITIONS
namespace heed::detail {

[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_joined(
    std::initializer_list<MessagePart> parts) {
  throw ShapeError(joined(parts));
}

}  // namespace heed::detail
#endif
