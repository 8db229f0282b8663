// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/detail/picture.hpp>

namespace heed::detail {

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

HEED_INLINE Picture page_of(const char* caller, std::span<const Picture> pictures, Index columns) {
  if (columns < 1) throw_invalid_argument(caller, ": ", columns, " pictures in a row");
  Picture page;
  Index x = 0, y = 0, row_height = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    if (i % static_cast<std::size_t>(columns) == 0) {
      y += row_height;
      x = row_height = 0;
    }
    const auto moved = [&](auto items, auto& to) {
      for (auto& item : items) {
        item.at.x += static_cast<double>(x);
        item.at.y += static_cast<double>(y);
        to.push_back(std::move(item));
      }
    };
    moved(pictures[i].cells, page.cells);
    moved(pictures[i].boxes, page.boxes);
    moved(pictures[i].marks, page.marks);
    moved(pictures[i].texts, page.texts);
    for (PictureLine line : pictures[i].lines) {
      for (Point& point : line.points) {
        point.x += static_cast<double>(x);
        point.y += static_cast<double>(y);
      }
      page.lines.push_back(std::move(line));
    }
    x += pictures[i].width;
    page.width = std::max(page.width, x);
    row_height = std::max(row_height, pictures[i].height);
  }
  page.height = y + row_height;
  return page;
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
  return y - 6;
}

}  // namespace heed::detail
