// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/index.hpp>

namespace heed::detail {

/// One character as it is drawn: UTF-8 with the accents that combine with it, and the columns a
/// terminal gives it.
struct Glyph {
  std::string bytes;
  Index width = 1;
};

/// Takes one code point off the front of `text`; U+FFFD, and one byte, for what is no UTF-8.
inline char32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  constexpr char32_t lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t code = length == 0 ? 0 : lead & lead_bits[length];
  bool valid = length != 0 && length <= text.size();
  for (std::size_t at = 1; valid && at < length; ++at) {
    valid = (byte(at) & 0xc0) == 0x80;
    code = code << 6 | (byte(at) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool no_character = (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff;
  valid = valid && !overlong && !no_character;
  text.remove_prefix(valid ? length : 1);
  return valid ? code : U'\ufffd';
}

inline std::string utf8(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

/// Columns of a code point in a terminal: 0 combining, 2 wide East Asian and pictographs, else 1.
/// The large blocks of Unicode's EastAsianWidth, not every exception.
inline Index code_point_width(char32_t code) {
  struct Block {
    char32_t first, last;
    Index width;
  };
  constexpr Block blocks[] = {{0x0300, 0x036f, 0},   {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},
                              {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},   {0xfe00, 0xfe0f, 0},
                              {0xfe20, 0xfe2f, 0},   {0x1100, 0x115f, 2},   {0x2e80, 0xa4cf, 2},
                              {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},
                              {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2},
                              {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1faff, 2}, {0x20000, 0x3fffd, 2}};
  for (const Block& block : blocks) {
    if (code >= block.first && code <= block.last) return block.width;
  }
  return 1;
}

/// What is drawn for a text, safe for terminals and XML: a control character becomes its picture
/// (␊ for a new line, ␛ for escape), a byte that is no UTF-8 becomes U+FFFD.
inline std::vector<Glyph> glyphs(std::string_view text) {
  std::vector<Glyph> result;
  while (!text.empty()) {
    char32_t code = take_code_point(text);
    if (code < 0x20) code += 0x2400;
    if (code == 0x7f) code = 0x2421;
    if ((code >= 0x80 && code < 0xa0) || (code & 0xfffe) == 0xfffe) code = 0xfffd;
    const Index width = code_point_width(code);
    if (width == 0 && !result.empty()) {
      result.back().bytes += utf8(code);
    } else {
      result.push_back({utf8(code), width});
    }
  }
  return result;
}

/// Columns a text takes in a terminal.
inline Index text_width(std::string_view text) {
  Index width = 0;
  for (const Glyph& glyph : glyphs(text)) width += glyph.width;
  return width;
}

inline std::string spaces(Index count) {
  return std::string(static_cast<std::size_t>(count > 0 ? count : 0), ' ');
}

/// The text in exactly `width` columns: filled with spaces, or cut with an ellipsis at its end.
inline std::string fitted(std::string_view text, Index width) {
  const bool cut = text_width(text) > width;
  const Index room = cut ? width - 1 : width;
  std::string result;
  Index used = 0;
  for (const Glyph& glyph : glyphs(text)) {
    if (used + glyph.width > room) break;
    result += glyph.bytes;
    used += glyph.width;
  }
  if (cut && width > 0) result += "…";
  return result + spaces(room - used);
}

/// A number with `decimals` digits behind the point, in every locale the same.
inline std::string fixed(double value, int decimals) {
  char buffer[400];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, decimals);
  return std::string(buffer, end.ptr);
}

/// A number as short as it reads well, four digits at most: "0.5", "12", "1e-09".
inline std::string brief(double value) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 4);
  return std::string(buffer, end.ptr);
}

/// A value for a cell, two digits that matter: ".96", "1.0", "-.05", "12"; "·" for an exact zero,
/// which a masked weight is and a small one is not.
inline std::string cell_text(double value) {
  if (value == 0) return "·";
  if (value != value) return "NaN";
  const double size = value < 0 ? -value : value;
  if (size - size != 0) return value < 0 ? "-∞" : "∞";
  if (size >= 99999.5) return brief(value);
  std::string text = fixed(size, size < 0.995 ? 2 : size < 9.95 ? 1 : 0);
  if (text[0] == '0') text.erase(0, 1);
  return value < 0 ? "-" + text : text;
}

}  // namespace heed::detail
