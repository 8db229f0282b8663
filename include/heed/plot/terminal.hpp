// SPDX-License-Identifier: MIT
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/line_chart.hpp>

namespace heed {

/// The colors of a terminal: none (characters as shades), xterm's palette, or all.
enum class ColorDepth { none, palette_256, true_color };

/// Options of to_terminal.
struct TerminalOptions {
  ColorDepth color = ColorDepth::none;
  Index width = 80;  // columns
};

namespace detail {

inline std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// The colors that the environment promises, if colors are wanted.
inline ColorDepth color_depth_of_environment() {
  const std::string_view depth = environment("COLORTERM"), terminal = environment("TERM");
  const bool exact = depth == "truecolor" || depth == "24bit" || terminal.ends_with("-direct");
  return exact ? ColorDepth::true_color : ColorDepth::palette_256;
}

}  // namespace detail

/// The abilities of the terminal at `descriptor`. No escapes if it is not a terminal, or with
/// NO_COLOR or TERM=dumb. FORCE_COLOR overrides all three: 0 for none, 2 for 256 colors, 3 for all.
/// The width comes from the terminal, otherwise from COLUMNS, otherwise it is 80. Conventions of
/// no-color.org and force-color.org.
inline TerminalOptions detect_terminal(int descriptor = STDOUT_FILENO) {
  TerminalOptions options;
  const bool terminal = isatty(descriptor) == 1;
  const std::string_view forced = detail::environment("FORCE_COLOR");
  if (!forced.empty()) {
    options.color = forced == "0"   ? ColorDepth::none
                    : forced == "2" ? ColorDepth::palette_256
                    : forced == "3" ? ColorDepth::true_color
                                    : detail::color_depth_of_environment();
  } else if (terminal && detail::environment("NO_COLOR").empty() &&
             detail::environment("TERM") != "dumb") {
    options.color = detail::color_depth_of_environment();
  }
  winsize size{};
  if (terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
  } else {
    Index columns = 0;
    for (const char digit : detail::environment("COLUMNS")) {
      if (digit < '0' || digit > '9' || columns > 9999) return options;
      columns = columns * 10 + (digit - '0');
    }
    if (columns > 0) options.width = columns;
  }
  return options;
}

/// detect_terminal with colors chosen by a word, for a program's --color option: "auto", "always",
/// "never", "256", "truecolor". Throws InvalidArgument for any other word.
inline TerminalOptions terminal_options(std::string_view color, int descriptor = STDOUT_FILENO) {
  TerminalOptions options = detect_terminal(descriptor);
  if (color == "auto") return options;
  if (color == "never") {
    options.color = ColorDepth::none;
  } else if (color == "always") {
    options.color = detail::color_depth_of_environment();
  } else if (color == "256") {
    options.color = ColorDepth::palette_256;
  } else if (color == "truecolor") {
    options.color = ColorDepth::true_color;
  } else {
    throw_invalid_argument("color '", color, "'; expected auto, always, never, 256 or truecolor");
  }
  return options;
}

namespace detail {

/// The level of xterm's 6 × 6 × 6 color cube nearest to a channel.
inline int cube_level(std::uint8_t channel) {
  return channel < 48 ? 0 : channel < 115 ? 1 : (channel - 35) / 40;
}

/// The color that a terminal shows for a color.
inline Color shown_color(const Color& color, ColorDepth depth) {
  if (depth != ColorDepth::palette_256) return color;
  constexpr std::uint8_t levels[] = {0, 95, 135, 175, 215, 255};
  return {levels[cube_level(color.red)], levels[cube_level(color.green)],
          levels[cube_level(color.blue)]};
}

/// The escape sequence for the background ("48") or text ("38") color.
inline std::string escape(std::string_view ground, const Color& color, ColorDepth depth) {
  std::string text = "\x1b[";
  text += ground;
  if (depth == ColorDepth::palette_256) {
    return text + ";5;" +
           std::to_string(16 + 36 * cube_level(color.red) + 6 * cube_level(color.green) +
                          cube_level(color.blue)) +
           "m";
  }
  return text + ";2;" + std::to_string(color.red) + ";" + std::to_string(color.green) + ";" +
         std::to_string(color.blue) + "m";
}

/// Text on a background, in black or white for contrast; plain without colors.
inline std::string painted(std::string_view text, const Color& back, ColorDepth depth) {
  if (depth == ColorDepth::none) return std::string(text);
  return escape("48", back, depth) + escape("38", text_color_on(shown_color(back, depth)), depth) +
         std::string(text) + "\x1b[0m";
}

/// Two cells in one character: its upper half and its lower half.
inline std::string half_blocks(const Color& upper, const Color& lower, ColorDepth depth) {
  return escape("38", upper, depth) + escape("48", lower, depth) + "▀\x1b[0m";
}

/// A line of text and its width in columns, without escapes.
struct TerminalLine {
  std::string text;
  Index width = 0;
};

/// Draws one heatmap as lines of text.
class TerminalHeatmap {
 public:
  TerminalHeatmap(const Heatmap& heatmap, const TerminalOptions& options)
      : heatmap_(heatmap), depth_(options.color) {
    check_heatmap(heatmap);
    lay_out(options.width);
    if (!heatmap_.title.empty()) add(std::string(text_of(heatmap_.title)));
    column_labels();
    const Index step = half_blocks_ ? 2 : 1;
    for (Index row = 0; row < rows(); row += step) draw_row(row);
  }

  const std::vector<TerminalLine>& lines() const { return lines_; }
  Index width() const {
    Index widest = 0;
    for (const auto& line : lines_) widest = std::max(widest, line.width);
    return widest;
  }

  /// The legend of colors, characters and axes: one line, without a line break.
  std::string legend() const {
    std::string line;
    const bool shades = depth_ == ColorDepth::none;
    if (!shades || cell_width_ <= 2) {
      const char* edge = shades ? "|" : "";  // of a bar that begins with spaces
      line = brief(heatmap_.low) + " " + edge;
      constexpr int steps = 16;
      for (int step = 0; step < steps; ++step) {
        const double share = static_cast<double>(step) / (steps - 1);
        line += shades ? std::string(1, shade(share)) : painted(" ", viridis(share), depth_);
      }
      line += edge;
      line += " " + brief(heatmap_.high) + "   ";
    }
    if (numbers_) line += "· exactly 0   ";
    line += "rows: " + text_of(heatmap_.row_title) + ", columns: " + text_of(heatmap_.column_title);
    if (factor_ > 1) {
      line +=
          "   a cell is the mean of " + std::to_string(factor_) + " x " + std::to_string(factor_);
    }
    return line;
  }

 private:
  static constexpr Index longest_column_label = 14;

  Index rows() const { return heatmap_.values.extent(0); }
  Index columns() const { return heatmap_.values.extent(1); }
  static std::string text_of(std::string_view text) { return fitted(text, text_width(text)); }

  /// Chooses the richest form that fits: numbers, square cells, one column per cell (two rows per
  /// line with colors), or means of blocks of cells.
  void lay_out(Index width) {
    for (const auto& label : heatmap_.row_labels) {
      label_width_ = std::max(label_width_, text_width(label));
    }
    label_width_ = std::min(label_width_, std::max<Index>(width / 4, 1));
    Index number_width = 3;
    for (const double value : heatmap_.values) {
      if (heatmap_.numbers) number_width = std::max(number_width, text_width(cell_text(value)));
    }
    const Index room = std::max<Index>(width - margin(), 1);
    numbers_ = heatmap_.numbers && columns() * (number_width + 1) <= room;
    cell_width_ = numbers_ ? number_width + 1 : columns() * 2 <= room ? 2 : 1;
    half_blocks_ = cell_width_ == 1 && depth_ != ColorDepth::none;
    factor_ = cell_width_ > 1 ? 1 : (columns() + room - 1) / room;
    if (factor_ > 1) {
      label_width_ = 0;
      factor_ = (columns() + width - 1) / std::max<Index>(width, 1);
      if (factor_ > 1) heatmap_ = shrunk(heatmap_, factor_);
    }
  }
  Index margin() const { return label_width_ == 0 ? 0 : label_width_ + 1; }

  void add(std::string text) {
    const Index width = text_width(text);
    lines_.push_back({std::move(text), width});
  }

  /// Writes column labels vertically, from top to bottom, aligned at their ends.
  void column_labels() {
    if (heatmap_.column_labels.empty()) return;
    std::vector<std::vector<Glyph>> labels;
    std::size_t height = 0;
    for (const auto& label : heatmap_.column_labels) {
      labels.push_back(glyphs(fitted(label, std::min(text_width(label), longest_column_label))));
      height = std::max(height, labels.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      std::string text = spaces(margin());
      for (const auto& label : labels) {
        const std::size_t above = height - label.size();
        const Glyph glyph = line < above ? Glyph{" ", 1} : label[line - above];
        const Index before = numbers_ ? cell_width_ / 2 : 0;
        const bool fits = before + glyph.width <= cell_width_;
        text += spaces(before) + (fits ? glyph.bytes : "?");
        text += spaces(cell_width_ - before - (fits ? glyph.width : 1));
      }
      while (!text.empty() && text.back() == ' ') text.pop_back();
      add(std::move(text));
    }
  }

  void draw_row(Index row) {
    TerminalLine line;
    if (margin() > 0) {
      const auto at = static_cast<std::size_t>(row);
      line.text = fitted(heatmap_.row_labels[at], label_width_) + " ";
    }
    for (Index column = 0; column < columns(); ++column) line.text += cell(row, column);
    line.width = margin() + columns() * cell_width_;
    lines_.push_back(std::move(line));
  }

  std::string cell(Index row, Index column) const {
    const double value = heatmap_.values(row, column);
    const Color color = viridis(share_of(heatmap_, value));
    if (half_blocks_) {
      if (row + 1 == rows()) return escape("38", color, depth_) + "▀\x1b[0m";
      const double below = heatmap_.values(row + 1, column);
      return half_blocks(color, viridis(share_of(heatmap_, below)), depth_);
    }
    if (!numbers_) {
      const bool plain = depth_ == ColorDepth::none;
      const char letter = plain ? shade(share_of(heatmap_, value)) : ' ';
      return painted(std::string(static_cast<std::size_t>(cell_width_), letter), color, depth_);
    }
    const std::string number = cell_text(value);
    const Index left = (cell_width_ - text_width(number) + 1) / 2;
    return painted(spaces(left) + number + spaces(cell_width_ - left - text_width(number)), color,
                   depth_);
  }

  static char shade(double share) {
    constexpr std::string_view shades = " .:-=+*#%@";
    if (share != share) return '?';
    const double at = share * 9.999;
    return shades[static_cast<std::size_t>(at < 0 ? 0 : at > 9 ? 9 : at)];
  }

  Heatmap heatmap_;
  ColorDepth depth_;
  Index label_width_ = 0;
  Index cell_width_ = 2;
  Index factor_ = 1;
  bool numbers_ = false;
  bool half_blocks_ = false;
  std::vector<TerminalLine> lines_;
};

/// Pictures side by side, aligned at the top.
inline std::string beside(std::span<const TerminalHeatmap> pictures, Index gap) {
  std::size_t height = 0;
  for (const auto& picture : pictures) height = std::max(height, picture.lines().size());
  std::string text;
  for (std::size_t line = 0; line < height; ++line) {
    std::string out;
    Index pending = 0;  // spaces, written only before something
    for (const auto& picture : pictures) {
      const bool given = line < picture.lines().size();
      const TerminalLine part = given ? picture.lines()[line] : TerminalLine{};
      if (part.width > 0) out += spaces(std::exchange(pending, 0)) + part.text;
      pending += picture.width() - part.width + gap;
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    text += out + "\n";
  }
  return text;
}

}  // namespace detail

/// Heatmaps as lines of text, as many side by side as fit the width: cells in color, or characters
/// as shades without colors, labels on both axes, and a color bar for each series of pictures with
/// the same range. Numbers are shown where they fit. Throws ShapeError for labels that do not fit
/// their axis.
inline std::string to_terminal(std::span<const Heatmap> heatmaps, const TerminalOptions& options) {
  constexpr Index gap = 3;
  std::vector<detail::TerminalHeatmap> pictures;
  for (const Heatmap& heatmap : heatmaps) pictures.emplace_back(heatmap, options);
  std::string text;
  for (std::size_t first = 0; first < pictures.size();) {
    std::size_t count = 1;
    Index width = pictures[first].width();
    while (first + count < pictures.size() &&
           width + gap + pictures[first + count].width() <= options.width) {
      width += gap + pictures[first + count++].width();
    }
    text += detail::beside(std::span(pictures).subspan(first, count), gap);
    first += count;
    const std::string legend = pictures[first - 1].legend();
    const bool last = first == pictures.size();
    if (last || pictures[first].legend() != legend) text += legend + "\n";
    if (!last) text += "\n";
  }
  return text;
}

/// One heatmap as lines of text.
inline std::string to_terminal(const Heatmap& heatmap,
                               const TerminalOptions& options = detect_terminal()) {
  return to_terminal(std::span(&heatmap, 1), options);
}

namespace detail {

/// Draws a chart as lines of text: lines of Braille dots, 2 × 4 to a character, and letters at
/// points, which distinguish lines without colors.
class TerminalLineChart {
 public:
  TerminalLineChart(const LineChart& chart, const TerminalOptions& options)
      : chart_(chart), depth_(options.color), axes_(axes_of(chart, x_parts(options), 5)) {
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
    if (!chart_.title.empty()) text += spaces(margin_ + 2) + safe(chart_.title) + "\n";
    for (Index row = 0; row < rows; ++row) text += y_label(row) + cells_of(row) + "\n";
    text += x_axis();
    if (!chart_.x_title.empty()) {
      const Index free = columns_ - text_width(chart_.x_title);
      text += spaces(margin_ + 2 + free / 2) + safe(chart_.x_title) + "\n";
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

  static std::string safe(std::string_view words) { return fitted(words, text_width(words)); }
  static Index x_parts(const TerminalOptions& options) {
    return std::clamp<Index>(options.width / 8, 1, 10);
  }
  static char mark_of(std::size_t series) {
    constexpr std::string_view marks = "ox+*#%@&";
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
    Index last = -apart;
    for (const auto& run : runs_of(chart_.series[series], axes_)) {
      for (const ChartPoint& point : run) {
        const Index column = column_of(point.x);
        if (!inside(point) || std::abs(column - last) < spacing(series)) continue;
        Cell& at = cell(row_of(point.y), column);
        at.mark = mark_of(series);
        at.series = series;
        last = column;
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
    std::string text;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (chart_.series[i].name.empty()) continue;
      if (!text.empty()) text += "   ";
      text += colored(std::string(1, mark_of(i)), i) + " " + safe(chart_.series[i].name);
    }
    if (!chart_.y_title.empty()) {
      text += std::string(text.empty() ? "" : "   ") + "up: " + safe(chart_.y_title);
    }
    return text.empty() ? text : spaces(margin_ + 2) + text + "\n";
  }

  const LineChart& chart_;
  ColorDepth depth_;
  ChartAxes axes_;
  Index margin_ = 0, columns_ = 0;
  std::vector<Cell> cells_;
};

}  // namespace detail

/// A chart as lines of text, with axes, ticks and a legend, no wider than the terminal. Throws
/// ShapeError for a series with unequal numbers of x and y, and InvalidArgument for an invalid
/// range.
inline std::string to_terminal(const LineChart& chart,
                               const TerminalOptions& options = detect_terminal()) {
  return detail::TerminalLineChart(chart, options).text();
}

}  // namespace heed
