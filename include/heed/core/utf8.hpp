// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heed {

/// One character of a text and how many bytes it takes there.
struct Utf8Character {
  char32_t code = 0;
  std::size_t size = 0;
  bool valid = true;  // false: a byte that begins no well-formed character, as U+FFFD, 1 byte long
};

/// The character that begins at byte `at` of `text`. Overlong forms, surrogates, codes above
/// U+10FFFF and characters cut short are not well-formed (Unicode 3.9, table 3-7).
inline Utf8Character decode_utf8(std::string_view text, std::size_t at) {
  constexpr Utf8Character invalid{0xfffd, 1, false};
  const auto byte = [&](std::size_t i) -> char32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4) return invalid;
  char32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return invalid;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const char32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return invalid;
  return {code, size, true};
}

/// Writes the character at the end of `text`.
inline void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

/// Whether every byte belongs to a well-formed character.
inline bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    if (!next.valid) return false;
    at += next.size;
  }
  return true;
}

/// How many bytes at the beginning of `text` can be shown now: all but a last character that is cut
/// short and may yet be completed, as happens when text arrives token by token.
inline std::size_t complete_utf8(std::string_view text) {
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

}  // namespace heed
