// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <span>

namespace heed::detail {

HEED_INLINE void MessagePart::append_to(std::string& message) const {
  char digits[320];  // of the longest double
  int length = 0;
  if (kind_ == Kind::integer) {
    length = std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(integer_));
  } else if (kind_ == Kind::natural) {
    length = std::snprintf(digits, sizeof digits, "%llu", integer_);
  } else if (kind_ == Kind::real) {
    length = std::snprintf(digits, sizeof digits, "%f", real_);
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
