// SPDX-License-Identifier: MIT
#pragma once

#include <span>

namespace heed::detail {

HEED_INLINE void MessagePart::append_to(std::string& message) const {
  switch (kind_) {
    case Kind::text:
      message.append(static_cast<const char*>(data_), size_);
      break;
    case Kind::letter:
      message += letter_;
      break;
    case Kind::integer:
      message += std::to_string(static_cast<long long>(integer_));
      break;
    case Kind::natural:
      message += std::to_string(integer_);
      break;
    case Kind::real:
      message += std::to_string(real_);
      break;
    case Kind::extents: {
      const std::span<const Index> extents(static_cast<const Index*>(data_), size_);
      append_range<std::span<const Index>>(message, &extents);
      break;
    }
    case Kind::range:
      append_(message, data_);
      break;
  }
}

HEED_INLINE std::string joined(std::initializer_list<MessagePart> parts) {
  std::string text;
  for (const MessagePart& part : parts) part.append_to(text);
  return text;
}

}  // namespace heed::detail
