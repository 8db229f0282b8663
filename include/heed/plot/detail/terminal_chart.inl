// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/detail/terminal_text.hpp>
#include <heed/plot/line_chart.hpp>

namespace heed::detail {

/// Draws a chart as lines of text: lines of Braille dots, 2 × 4 to a character, and letters at
/// points, which distinguish lines without colors.
class TerminalLineChart {
 public:
  TerminalLineChart(const LineChart& chart, const TerminalOptions& options)
      : chart_(chart),
        depth_(options.color),
        width_(options.width),
        axes_(axes_of(chart, x_parts(options), 5)) {
    for (const double tick : axes_.y.ticks) {
      margin_ = std::max(margin_, text_width(axes_.y.label(tick)));
    }
    columns_ = std::clamp<Index>(options.width - margin_ - 3, 2, most_columns);
    cells_.resize(static_cast<std::size_t>(rows * columns_));
    for (std::size_t i = 0; i < chart.series.size(); ++i) draw_lines(i);
    for (std::size_t i = 0; i < chart.series.size(); ++i) draw_points(i);
  }

  std::string text() const {
    std::string text;
    if (!chart_.title.empty()) {
      const Index room = std::max<Index>(width_ - margin_ - 2, 1);
      const Index title = std::min(room, text_width(chart_.title));
      text += spaces(margin_ + 2) + fitted(chart_.title, title) + "\n";
    }
    for (Index row = 0; row < rows; ++row) text += y_label(row) + cells_of(row) + "\n";
    text += x_axis();
    if (!chart_.x_title.empty()) {
      const Index title = std::min(columns_, text_width(chart_.x_title));
      text += spaces(margin_ + 2 + (columns_ - title) / 2) + fitted(chart_.x_title, title) + "\n";
    }
    return text + legend();
  }

 private:
  static constexpr Index rows = 14, most_columns = 96;

  struct Cell {
    std::uint8_t dots = 0;
    char mark = 0;
    std::size_t series = 0;
  };

  static Index x_parts(const TerminalOptions& options) {
    return std::clamp<Index>(options.width / 8, 1, 10);
  }
  static char mark_of(std::size_t series) {
    constexpr std::string_view marks = "ox+*#%@&svdA";
    return marks[series % marks.size()];
  }
  Cell& cell(Index row, Index column) {
    return cells_[static_cast<std::size_t>(row * columns_ + column)];
  }
  /// The nearest of `count` places for a share from 0 to 1.
  static Index place(double share, Index count) {
    const auto at = static_cast<Index>(std::floor(share * static_cast<double>(count - 1) + 0.5));
    return std::clamp<Index>(at, 0, count - 1);
  }
  Index column_of(double share) const { return place(share, 2 * columns_) / 2; }
  static Index row_of(double share) { return (4 * rows - 1 - place(share, 4 * rows)) / 4; }

  void draw_lines(std::size_t series) {
    for (const auto& run : runs_of(chart_.series[series], axes_)) {
      for (std::size_t i = 1; i < run.size(); ++i) {
        ChartPoint a = run[i - 1], b = run[i];
        if (clip(a, b)) draw_line(series, a, b);
      }
    }
  }

  void draw_line(std::size_t series, const ChartPoint& a, const ChartPoint& b) {
    const Index width = 2 * columns_, height = 4 * rows;
    const Index steps = std::max<Index>({1, std::abs(place(a.x, width) - place(b.x, width)),
                                         std::abs(place(a.y, height) - place(b.y, height))});
    for (Index step = 0; step <= steps; ++step) {
      const double along = static_cast<double>(step) / static_cast<double>(steps);
      const Index x = place(a.x + along * (b.x - a.x), width);
      const Index y = height - 1 - place(a.y + along * (b.y - a.y), height);
      // Unicode counts the dots of a Braille cell down the left column, then the right, then the
      // bottom row, which came later.
      constexpr std::uint8_t bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
      Cell& at = cell(y / 4, x / 2);
      at.dots = static_cast<std::uint8_t>(at.dots | bits[y % 4][x % 2]);
      at.series = series;
    }
  }

  /// Draws a letter at every point, or at fewer where the line between them would be hidden.
  void draw_points(std::size_t series) {
    Index last = -apart, turn = 1;
    for (const auto& run : runs_of(chart_.series[series], axes_)) {
      for (const ChartPoint& point : run) {
        const Index column = column_of(point.x);
        if (!inside(point) || std::abs(column - last) < spacing(series)) continue;
        Cell& at = cell(row_of(point.y), column);
        // Points of lines that coincide take turns.
        const bool taken = at.mark != 0 && at.series != series;
        last = column;
        if (taken && (turn++ % 2 == 0)) continue;
        at.mark = mark_of(series);
        at.series = series;
      }
    }
  }
  static constexpr Index apart = 1 << 20;
  Index spacing(std::size_t series) const {
    const auto points = static_cast<Index>(chart_.series[series].x.size());
    return points * 2 <= columns_ ? 0 : depth_ == ColorDepth::none ? 8 : apart;
  }

  std::string y_label(Index row) const {
    for (const double tick : axes_.y.ticks) {
      const double share = axes_.y.share(tick);
      if (share < 0 || share > 1 || row_of(share) != row) continue;
      const std::string label = axes_.y.label(tick);
      return spaces(margin_ - text_width(label)) + label + " ┤";
    }
    return spaces(margin_) + " │";
  }

  std::string colored(const std::string& text, std::size_t series) const {
    if (depth_ == ColorDepth::none) return text;
    return escape("38", line_color(series), depth_) + text + "\x1b[0m";
  }

  std::string cells_of(Index row) const {
    std::string text;
    Index pending = 0;
    for (Index column = 0; column < columns_; ++column) {
      const Cell& at = cells_[static_cast<std::size_t>(row * columns_ + column)];
      if (at.mark == 0 && at.dots == 0) {
        ++pending;
        continue;
      }
      text += spaces(pending);
      pending = 0;
      std::string drawn;
      append_utf8(drawn, at.mark != 0 ? static_cast<char32_t>(at.mark) : 0x2800u + at.dots);
      text += colored(drawn, at.series);
    }
    return text;
  }

  /// The axis with its ticks, and the numbers below them that fit.
  std::string x_axis() const {
    std::string line, numbers;
    Index drawn = 0, written = 0;
    for (const double tick : axes_.x.ticks) {
      const Index at = column_of(axes_.x.share(tick));
      const std::string label = axes_.x.label(tick);
      const Index begin = margin_ + 2 + at - text_width(label) / 2;
      if (at < drawn || (written > 0 && begin <= written)) continue;
      for (; drawn < at; ++drawn) line += "─";
      line += "┬";
      ++drawn;
      numbers += spaces(begin - written) + label;
      written = begin + text_width(label);
    }
    for (; drawn < columns_; ++drawn) line += "─";
    return spaces(margin_) + " └" + line + "\n" + numbers + "\n";
  }

  std::string legend() const {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (chart_.series[i].name.empty()) continue;
      const Index room = std::max<Index>(width_ - margin_ - 4, 1);
      const Index name = std::min(room, text_width(chart_.series[i].name));
      parts.push_back(colored(std::string(1, mark_of(i)), i) + " " +
                      fitted(chart_.series[i].name, name));
    }
    if (!chart_.y_title.empty()) parts.push_back("up: " + safe_text(chart_.y_title));
    return legend_lines(parts, margin_ + 2, width_);
  }

  const LineChart& chart_;
  ColorDepth depth_;
  Index width_;
  ChartAxes axes_;
  Index margin_ = 0, columns_ = 0;
  std::vector<Cell> cells_;
};

HEED_INLINE std::string terminal_text(const LineChart& chart, const TerminalOptions& options) {
  return TerminalLineChart(chart, options).text();
}

}  // namespace heed::detail
