// SPDX-License-Identifier: MIT
#pragma once

namespace heed::detail {

[[noreturn]] __attribute__((cold)) HEED_INLINE void throw_joined(
    std::initializer_list<MessagePart> parts) {
  throw ShapeError(joined(parts));
}

}  // namespace heed::detail
