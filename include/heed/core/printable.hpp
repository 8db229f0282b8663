// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <heed/core/utf8.hpp>

namespace heed {

/// Text from a file or a stranger as one line that is safe to show: control characters, marks that
/// turn the direction of writing and bytes that are not UTF-8 as `\x0a` for each byte; at most
/// about `longest` bytes, then "…".
inline std::string printable(std::string_view text, std::size_t longest = 80) {
  const auto unsafe = [](char32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0xfeff;
  };
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    if (shown.size() + next.size > longest) return shown + "…";
    const std::string_view bytes = text.substr(at, next.size);
    at += next.size;
    if (next.valid && !unsafe(next.code)) {
      shown += bytes;
      continue;
    }
    for (const char byte : bytes) {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(byte);
      shown += {'\\', 'x', digits[value >> 4], digits[value & 15]};
    }
  }
  return shown;
}

/// The same between single quotation marks, as names stand in messages.
inline std::string quote(std::string_view text) { return "'" + printable(text) + "'"; }

}  // namespace heed
