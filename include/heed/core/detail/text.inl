// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/core/text.hpp>, which includes this file.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace heed {

HEED_INLINE bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    if (!next.valid) return false;
    at += next.size;
  }
  return true;
}

HEED_INLINE std::size_t complete_utf8(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto lead = static_cast<unsigned char>(text[text.size() - back]);
    if ((lead & 0xc0) == 0x80) continue;
    const std::size_t needs = lead < 0xc2 || lead > 0xf4 ? 1
                              : lead < 0xe0              ? 2
                              : lead < 0xf0              ? 3
                                                         : 4;
    return needs > back ? text.size() - back : text.size();
  }
  return text.size();
}

HEED_INLINE std::string printable(std::string_view text, std::size_t longest) {
  const auto unsafe = [](char32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0x061c || code == 0xfeff;
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

HEED_INLINE std::string quote(std::string_view text) { return "'" + printable(text) + "'"; }

HEED_INLINE TextList::TextList(std::initializer_list<std::string_view> texts) { append(texts); }

HEED_INLINE void TextList::reserve(std::size_t count, std::size_t characters) {
  ends_.reserve(count);
  characters_.reserve(characters);
}

HEED_INLINE void TextList::push_back(std::string_view text) {
  if (text.size() > UINT32_MAX - characters_.size()) {
    throw_invalid_argument("TextList: more than 4 GiB of characters");
  }
  characters_ += text;
  ends_.push_back(static_cast<std::uint32_t>(characters_.size()));
}

}  // namespace heed
