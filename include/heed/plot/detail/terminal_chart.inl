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
#include <heed/plot/chart.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/detail/terminal_text.hpp>

namespace heed::detail {

/// Draws a chart as lines of text: lines of Braille dots, 2 × 4 to a character, and letters at
/// points, which distinguish lines without colors.
class TerminalChart {
 public:
  TerminalChart(const Chart& chart, const TerminalOptions& options)
      : chart_(chart),
        depth_(options.color),
        width_(options.width),
        axes_(axes_of(chart, x_parts(options), 5)) {
    const auto widest = [](const Axis& axis) {
      Index width = 0;
      for (const double tick : axis.ticks) width = std::max(width, text_width(axis.label(tick)));
      return width;
    };
    margin_ = widest(axes_.y);
    const Index right = axes_.both ? widest(axes_.right) + 2 : 0;
    columns_ = std::clamp<Index>(options.width - margin_ - 3 - right, 2, most_columns);
    cells_.resize(static_cast<std::size_t>(rows * columns_));
    for (const ChartBar& bar : bars_of(chart, axes_)) draw_bar(bar);
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      if (!chart.series[i].bars) draw_lines(i);
    }
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      if (!chart.series[i].bars) draw_points(i);
    }
  }

  std::string text() const {
    std::string text;
    if (!chart_.title.empty()) {
      const Index room = std::max<Index>(width_ - margin_ - 2, 1);
      const Index title = std::min(room, text_width(chart_.title));
      text += spaces(margin_ + 2) + fitted(chart_.title, title) + "\n";
    }
    for (Index row = 0; row < rows; ++row) {
      text += y_label(row) + cells_of(row) + right_label(row) + "\n";
    }
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
    Index lines = 0;  // with a point here
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
      draw_dot(series, place(a.x + along * (b.x - a.x), width),
               place(a.y + along * (b.y - a.y), height));
    }
  }

  /// A dot, y up from the axis.
  void draw_dot(std::size_t series, Index x, Index y) {
    y = 4 * rows - 1 - y;
    // Unicode counts the dots of a Braille cell down the left column, then the right, then the
    // bottom row, which came later.
    constexpr std::uint8_t bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    Cell& at = cell(y / 4, x / 2);
    if (chart_.series[at.series].bars && !chart_.series[series].bars) at.dots = 0;  // over a bar
    at.dots = static_cast<std::uint8_t>(at.dots | bits[y % 4][x % 2]);
    at.series = series;
  }

  /// Fills whole characters of each row, so that none belongs to two bars, with the letter of the
  /// series at the end.
  void draw_bar(const ChartBar& bar) {
    const auto columns = static_cast<double>(columns_);
    const auto whole = static_cast<Index>((bar.right - bar.left) * columns + 1e-9);
    const auto left = static_cast<Index>(std::floor(bar.left * columns + 0.5));
    const Index first = std::clamp<Index>(left, 0, columns_ - 1);
    const Index last =
        std::min(first + std::max<Index>(whole > 3 ? whole - 1 : whole, 1), columns_);
    const Index low = place(bar.low, 4 * rows), high = place(bar.high, 4 * rows);
    if (low == high) return;
    for (Index y = low; y <= high; ++y) {
      for (Index x = 2 * first; x < 2 * last; ++x) draw_dot(bar.series, x, y);
    }
    const Series& series = chart_.series[bar.series];
    if (series.name.empty()) return;
    const bool down = axes_.y_of(series).share(series.y[bar.point]) <= bar.low;
    cell(row_of(down ? bar.low : bar.high), (first + last - 1) / 2).mark = mark_of(bar.series);
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
        if (at.mark == 0 || at.series != series) ++at.lines;
        last = column;
        if (at.lines > 1 && turn++ % at.lines != 1) continue;
        at.mark = mark_of(series);
        at.series = series;
      }
    }
  }
  static constexpr Index apart = 1 << 20;
  Index spacing(std::size_t series) const {
    const auto points = static_cast<Index>(chart_.series[series].y.size());
    return points * 2 <= columns_ ? 0 : depth_ == ColorDepth::none ? 8 : apart;
  }

  /// The number of an axis beside this row; empty where there is none.
  static std::string number_beside(const Axis& axis, Index row) {
    for (const double tick : axis.ticks) {
      const double share = axis.share(tick);
      if (share >= 0 && share <= 1 && row_of(share) == row) return axis.label(tick);
    }
    return "";
  }

  std::string y_label(Index row) const {
    const std::string number = number_beside(axes_.y, row);
    return spaces(margin_ - text_width(number)) + number + (number.empty() ? " │" : " ┤");
  }

  std::string right_label(Index row) const {
    if (!axes_.both) return "";
    const std::string number = number_beside(axes_.right, row);
    return number.empty() ? "│" : "├ " + number;
  }

  std::string colored(const std::string& text, std::size_t series) const {
    if (depth_ == ColorDepth::none) return text;
    const Color color = chart_.series[series].bars ? bar_color(series) : line_color(series);
    return escape("38", color, depth_) + text + "\x1b[0m";
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
    return axes_.both ? text + spaces(pending) : text;
  }

  /// Names of x stand below it if all of them fit; otherwise numbers do, and the legend says what
  /// they mean.
  bool names_fit() const {
    const double places = axes_.x.high - axes_.x.low;
    for (const std::string& name : chart_.x_labels) {
      const auto needed = static_cast<double>(text_width(name) + 1);
      if (needed * places > static_cast<double>(columns_)) return false;
    }
    return !chart_.x_labels.empty();
  }

  /// The axis with its ticks, and the numbers below them that fit.
  std::string x_axis() const {
    std::string line, numbers;
    Index drawn = 0, written = 0;
    const bool named = names_fit();
    for (const double tick : axes_.x.ticks) {
      const Index at = column_of(axes_.x.share(tick));
      const std::string label =
          named ? safe_text(chart_.x_labels[static_cast<std::size_t>(tick)]) : axes_.x.label(tick);
      const Index length = text_width(label), room = larger(width_ - length, 0);
      const Index begin = std::clamp<Index>(margin_ + 2 + at - length / 2, 0, room);
      if (at < drawn || (written > 0 && begin <= written)) continue;
      for (; drawn < at; ++drawn) line += "─";
      line += "┬";
      ++drawn;
      numbers += spaces(begin - written) + label;
      written = begin + length;
    }
    for (; drawn < columns_; ++drawn) line += "─";
    return spaces(margin_) + " └" + line + (axes_.both ? "┘" : "") + "\n" + numbers + "\n";
  }

  std::string legend() const {
    std::vector<std::string> parts, names;
    const Index room = std::max<Index>(width_ - margin_ - 4, 1);
    const auto cut = [&](const std::string& text, Index most) {
      return fitted(text, std::min(std::max<Index>(most, 1), text_width(text)));
    };
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (chart_.series[i].name.empty()) continue;
      const std::string side = chart_.series[i].right ? " (right)" : "";
      parts.push_back(colored(std::string(1, mark_of(i)), i) + " " +
                      cut(chart_.series[i].name, room - text_width(side)) + side);
    }
    if (!chart_.y_title.empty()) parts.push_back("up: " + safe_text(chart_.y_title));
    if (axes_.both && !chart_.right_title.empty()) {
      parts.push_back("right: " + safe_text(chart_.right_title));
    }
    for (std::size_t i = 0; !names_fit() && i < chart_.x_labels.size(); ++i) {
      const std::string number = std::to_string(i) + " ";
      names.push_back(number + cut(chart_.x_labels[i], room - text_width(number)));
    }
    return legend_lines(parts, margin_ + 2, width_) + legend_lines(names, margin_ + 2, width_);
  }

  const Chart& chart_;
  ColorDepth depth_;
  Index width_;
  ChartAxes axes_;
  Index margin_ = 0, columns_ = 0;
  std::vector<Cell> cells_;
};

HEED_INLINE std::string terminal_text(const Chart& chart, const TerminalOptions& options) {
  return TerminalChart(chart, options).text();
}

}  // namespace heed::detail
