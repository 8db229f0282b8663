// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
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

/// Every label in a smaller font, or every step-th one where that could not be read.
HEED_INLINE SideLabels shrunk_labels(const std::vector<std::string>& words, double pitch,
                                     int angle) {
  SideLabels labels{.angle = angle};
  labels.size = std::min(largest_label, pitch / text_height);
  if (labels.size < smallest_label) {
    labels.size = 9;
    labels.step = static_cast<Index>(std::ceil(labels.size * text_height / pitch));
  }
  return chosen(words, std::move(labels));
}

HEED_INLINE SideLabels labels_down(const std::vector<std::string>& words, double pitch) {
  return shrunk_labels(words, pitch, 0);
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
  if (slanted < 10) return shrunk_labels(words, pitch, 90);
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
  return y - 6;
}

}  // namespace heed::detail
