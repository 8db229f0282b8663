// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>
#include <heed/plot/detail/drawing.hpp>

namespace heed::detail {

HEED_INLINE Index code_point_width(char32_t code) {
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

HEED_INLINE std::vector<Glyph> glyphs(std::string_view text) {
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

HEED_INLINE Index text_width(std::string_view text) {
  Index width = 0;
  for (const Glyph& glyph : glyphs(text)) width += glyph.width;
  return width;
}

HEED_INLINE std::string spaces(Index count) {
  return std::string(static_cast<std::size_t>(count > 0 ? count : 0), ' ');
}

HEED_INLINE std::string fitted(std::string_view text, Index width) {
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

HEED_INLINE std::string fixed(double value, int decimals) {
  char buffer[400];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, decimals);
  return std::string(buffer, end.ptr);
}

HEED_INLINE std::string brief(double value) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 4);
  return std::string(buffer, end.ptr);
}

HEED_INLINE std::string cell_text(double value) {
  if (value == 0) return "·";
  if (value != value) return "NaN";
  const double size = value < 0 ? -value : value;
  if (size - size != 0) return value < 0 ? "-∞" : "∞";
  if (size >= 99999.5) return brief(value);
  std::string text = fixed(size, size < 0.995 ? 2 : size < 9.95 ? 1 : 0);
  if (text[0] == '0') text.erase(0, 1);
  return value < 0 ? "-" + text : text;
}

HEED_INLINE std::string safe_text(std::string_view text) { return fitted(text, text_width(text)); }

/// The width of a character in sizes of its font.
HEED_INLINE double glyph_ems(const Glyph& glyph) {
  // Hundredths for " " to "~".
  constexpr std::uint8_t widths[] = {
      32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36,  32, 34, 64, 64, 64,
      64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 56, 102, 68, 69, 72, 77, 67,
      61, 78, 75, 29, 50, 67, 56, 86, 75, 79, 67, 79, 72, 67,  61, 73, 68, 99, 69,
      67, 69, 39, 34, 39, 84, 56, 50, 61, 63, 55, 63, 62, 35,  63, 63, 28, 28, 58,
      28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59,  52, 64, 34, 64, 84};
  const auto first = static_cast<unsigned char>(glyph.bytes[0]);
  if (first >= 0x20 && first < 0x7f) return widths[first - 0x20] / 100.0;
  if (glyph.bytes == "·") return 0.33;
  return glyph.width == 2 || first >= 0xe2 ? 1 : 0.8;
}

HEED_INLINE double text_ems(std::string_view text) {
  double ems = 0;
  for (const Glyph& glyph : glyphs(text)) ems += glyph_ems(glyph);
  return ems;
}

HEED_INLINE std::string cut_to(std::string_view text, double ems) {
  const auto all = glyphs(text);
  double whole = 0;
  for (const Glyph& glyph : all) whole += glyph_ems(glyph);
  const bool cut = whole > ems + 1e-9;
  if (cut) ems -= 1;  // for the ellipsis
  std::string result;
  for (const Glyph& glyph : all) {
    ems -= glyph_ems(glyph);
    if (cut && ems < 0) break;
    result += glyph.bytes;
  }
  return cut ? result + "…" : result;
}

HEED_INLINE std::vector<std::string> wrapped(std::string_view text, double ems, std::size_t lines) {
  std::vector<std::string> result(1);
  double used = 0;
  std::size_t space = 0;  // where the line may end, if not 0
  for (const Glyph& glyph : glyphs(text)) {
    const double width = glyph_ems(glyph);
    if (result.size() < lines && used + width > ems && !result.back().empty()) {
      std::string next;
      if (glyph.bytes != " " && space > 0) {
        next = result.back().substr(space + 1);
        result.back().resize(space);
      }
      used = text_ems(next);
      result.push_back(next);
      space = 0;
      if (glyph.bytes == " ") continue;
    }
    if (glyph.bytes == " ") space = result.back().size();
    result.back() += glyph.bytes;
    used += width;
  }
  for (std::string& line : result) line = cut_to(line, ems);
  return result;
}

HEED_INLINE double PictureText::width() const {
  return text_ems(words) * size * (bold ? 1.12 : 1.0);
}

HEED_INLINE std::array<Point, 4> PictureText::corners() const {
  const double left = -anchor * width(), right = left + width();
  const double radians = angle * 3.14159265358979323846 / 180;
  const double cosine = std::cos(radians), sine = std::sin(radians);
  const auto turned = [&](double x, double y) {
    return Point{at.x + x * cosine + y * sine, at.y - x * sine + y * cosine};
  };
  const double top = -text_ascent * size, bottom = text_descent * size;
  return {turned(left, top), turned(right, top), turned(right, bottom), turned(left, bottom)};
}

HEED_INLINE std::vector<Point> mark_corners(std::size_t shape) {
  switch (shape % mark_shapes) {
    case 1:  // a cross, as thick as a line
      return {{-4, -3}, {-3, -4}, {0, -1}, {3, -4}, {4, -3}, {1, 0},
              {4, 3},   {3, 4},   {0, 1},  {-3, 4}, {-4, 3}, {-1, 0}};
    case 2:
      return {{-3.2, -3.2}, {3.2, -3.2}, {3.2, 3.2}, {-3.2, 3.2}};
    case 3:
      return {{0, -4.4}, {4, 3}, {-4, 3}};
    case 4:
      return {{0, -4.6}, {4.6, 0}, {0, 4.6}, {-4.6, 0}};
    default:
      return {};
  }
}

/// Adds a picture to a page, with its corner at (x, y).
HEED_INLINE void place(const Picture& picture, Index x, Index y, Picture& page) {
  const auto move = [&](Point& point) {
    point.x += static_cast<double>(x);
    point.y += static_cast<double>(y);
  };
  const auto add = [&](auto items, auto& to) {
    for (auto& item : items) {
      move(item.at);
      to.push_back(std::move(item));
    }
  };
  add(picture.cells, page.cells);
  add(picture.boxes, page.boxes);
  add(picture.marks, page.marks);
  add(picture.texts, page.texts);
  for (PictureLine line : picture.lines) {
    for (Point& point : line.points) move(point);
    page.lines.push_back(std::move(line));
  }
  page.width = std::max(page.width, x + picture.width);
  page.height = std::max(page.height, y + picture.height);
}

HEED_INLINE Picture page_of(const char* caller, std::span<const Picture> pictures, Index columns) {
  if (columns < 1) throw_invalid_argument(caller, ": ", columns, " pictures in a row");
  Picture page;
  while (!pictures.empty()) {
    const auto row = pictures.first(std::min(pictures.size(), static_cast<std::size_t>(columns)));
    pictures = pictures.subspan(row.size());
    Index title_height = 0, x = 0;
    for (const Picture& picture : row) title_height = std::max(title_height, picture.title_height);
    const Index y = page.height;
    for (const Picture& picture : row) {
      place(picture, x, y + title_height - picture.title_height, page);
      x += picture.width;
    }
  }
  return page;
}

HEED_INLINE double SideLabels::depth() const {
  const double radians = angle * 3.14159265358979323846 / 180;
  return longest * std::sin(radians) + text_ascent * size * std::cos(radians);
}

inline constexpr double smallest_label = 7, largest_label = 13;

/// Every step-th of the words.
HEED_INLINE SideLabels chosen(const std::vector<std::string>& words, SideLabels labels) {
  const double most = labels.angle == 0 ? 200 : 150;  // pixels
  for (std::size_t i = 0; i < words.size(); i += static_cast<std::size_t>(labels.step)) {
    labels.words.push_back(cut_to(words[i], most / labels.size));
    labels.longest = std::max(labels.longest, text_ems(labels.words.back()) * labels.size);
  }
  return labels;
}

HEED_INLINE SideLabels labels_down(const std::vector<std::string>& words, double pitch, int angle) {
  SideLabels labels{.angle = angle};
  labels.size = std::min(largest_label, pitch / text_height);
  if (labels.size < smallest_label) {
    labels.size = 9;
    labels.step = static_cast<Index>(std::ceil(labels.size * text_height / pitch));
  }
  return chosen(words, std::move(labels));
}

HEED_INLINE SideLabels labels_across(const std::vector<std::string>& words, double pitch) {
  double widest = 0;
  for (const std::string& label : words) widest = std::max(widest, text_ems(label));
  const double slanted = pitch * 0.7071 / text_height;
  if (widest * 11 + 4 <= pitch) {
    const double size = std::min(largest_label, (pitch - 4) / std::max(widest, 0.1));
    SideLabels labels = chosen(words, {.size = size});
    labels.longest = 0;
    return labels;
  }
  if (slanted < 10) return labels_down(words, pitch, 90);
  return chosen(words, {.size = std::min(largest_label, slanted), .angle = 45});
}

HEED_INLINE Flow flow_of(const std::vector<double>& widths, double room, double line_height) {
  Flow flow;
  Point next;
  for (const double width : widths) {
    if (next.x > 0 && next.x + width > room) next = {0, next.y + line_height};
    flow.places.push_back(next);
    next.x += width;
  }
  flow.height = widths.empty() ? 0 : next.y + line_height;
  return flow;
}

HEED_INLINE double add_title(Picture& picture, const std::string& title) {
  if (title.empty()) return 0;
  constexpr double size = 16, line = 22, margin = 16;
  const double room = static_cast<double>(picture.width) - 2 * margin;
  double y = 12;
  for (const std::string& words : wrapped(title, room / size / 1.12, 3)) {
    picture.texts.push_back(
        {.at = {margin, y + text_ascent * size}, .words = words, .size = size, .bold = true});
    y += line;
  }
  picture.title_height = static_cast<Index>(y) - 6;
  return y - 6;
}

}  // namespace heed::detail
