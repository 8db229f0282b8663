// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>

namespace heed::detail {

/// A character as drawn: UTF-8 with its combining accents, and its width in a terminal.
struct Glyph {
  std::string bytes;
  Index width = 1;
};

/// The width of a code point in a terminal: 0 combining, 2 wide East Asian and pictographs,
/// otherwise 1. From the large blocks of Unicode's EastAsianWidth, without every exception.
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

/// The characters of a text, safe for terminals and XML: control characters become their symbols (␊
/// for a line break, ␛ for escape), bytes that are not UTF-8 become U+FFFD.
inline std::vector<Glyph> glyphs(std::string_view text) {
  std::vector<Glyph> result;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    at += next.size;
    char32_t code = next.code;
    if (code < 0x20) code += 0x2400;
    if (code == 0x7f) code = 0x2421;
    if ((code >= 0x80 && code < 0xa0) || (code & 0xfffe) == 0xfffe) code = 0xfffd;
    const Index width = code_point_width(code);
    if (width != 0 || result.empty()) result.push_back({"", width});
    append_utf8(result.back().bytes, code);
  }
  return result;
}

/// The width of a text in a terminal.
inline Index text_width(std::string_view text) {
  Index width = 0;
  for (const Glyph& glyph : glyphs(text)) width += glyph.width;
  return width;
}

inline std::string spaces(Index count) {
  return std::string(static_cast<std::size_t>(count > 0 ? count : 0), ' ');
}

/// The text in exactly `width` columns, padded with spaces or cut with an ellipsis.
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

/// A number with `decimals` digits after the point, the same in every locale.
inline std::string fixed(double value, int decimals) {
  char buffer[400];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, decimals);
  return std::string(buffer, end.ptr);
}

/// A number in at most four significant digits: "0.5", "12", "1e-09".
inline std::string brief(double value) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 4);
  return std::string(buffer, end.ptr);
}

/// A value for a cell in two significant digits: ".96", "1.0", "-.05", "12"; "·" for an exact zero,
/// which is a masked weight and not merely a small one.
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

/// The places of several pictures in one: rows of `columns`, each as high as its highest picture.
struct PictureGrid {
  struct Corner {
    Index x, y;
  };
  std::vector<Corner> corners;
  Index width = 0, height = 0;
};

/// Throws InvalidArgument, with the caller's name, for columns below 1.
template <class Picture>
PictureGrid grid_of(const char* caller, std::span<const Picture> pictures, Index columns) {
  if (columns < 1) throw_invalid_argument(caller, ": ", columns, " pictures in a row");
  PictureGrid grid;
  Index x = 0, row_height = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    if (i % static_cast<std::size_t>(columns) == 0) {
      grid.height += row_height;
      x = row_height = 0;
    }
    grid.corners.push_back({x, grid.height});
    x += pictures[i].width();
    grid.width = std::max(grid.width, x);
    row_height = std::max(row_height, pictures[i].height());
  }
  grid.height += row_height;
  return grid;
}

}  // namespace heed::detail
