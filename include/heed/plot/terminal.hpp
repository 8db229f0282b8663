// SPDX-License-Identifier: MIT
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include <heed/plot/color.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/text.hpp>

namespace heed {

/// How colors reach a terminal: not at all (shades of characters), from a palette, or exactly.
enum class ColorDepth { none, palette_256, true_color };

struct TerminalOptions {
  ColorDepth color = ColorDepth::none;
  Index width = 80;  // columns
};

/// What the terminal behind `descriptor` can show. Not a terminal, NO_COLOR, TERM=dumb: no escapes;
/// FORCE_COLOR overrides all three. (no-color.org, force-color.org, COLORTERM.)
inline TerminalOptions detect_terminal(int descriptor = STDOUT_FILENO) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  const auto is = [](const char* name, std::string_view wanted) {
    const char* value = std::getenv(name);
    return value != nullptr && value == wanted;
  };
  TerminalOptions options;
  const bool terminal = isatty(descriptor) == 1;
  if (set("FORCE_COLOR") || (terminal && !set("NO_COLOR") && !is("TERM", "dumb"))) {
    options.color = is("COLORTERM", "truecolor") || is("COLORTERM", "24bit")
                        ? ColorDepth::true_color
                        : ColorDepth::palette_256;
  }
  winsize size{};
  if (terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
  }
  return options;
}

namespace detail {

/// Draws one heatmap as text.
class TerminalHeatmap {
 public:
  TerminalHeatmap(const Heatmap& heatmap, const TerminalOptions& options)
      : heatmap_(heatmap), options_(options) {
    for (const auto& label : heatmap.row_labels) {
      label_width_ = std::max(label_width_, text_width(label));
    }
    label_width_ = std::min(label_width_, options.width / 4);
    const Index room = options.width - label_width_ - 1;
    const Index columns = std::max<Index>(1, heatmap.values.extent(1));
    cell_width_ = heatmap.numbers && columns * 4 <= room ? 4 : columns * 2 <= room ? 2 : 1;
    // What does not fit is left out rather than wrapped into a muddle.
    shown_columns_ = std::min(columns, std::max<Index>(1, room / cell_width_));
  }

  std::string draw() {
    if (!heatmap_.title.empty()) text_ += heatmap_.title + "\n";
    column_labels();
    for (Index row = 0; row < heatmap_.values.extent(0); ++row) draw_row(row);
    if (shown_columns_ < heatmap_.values.extent(1)) {
      text_ += "(" + std::to_string(heatmap_.values.extent(1) - shown_columns_) +
               " more columns to the right)\n";
    }
    color_bar();
    return text_;
  }

 private:
  double share(double value) const {
    const double range = heatmap_.high - heatmap_.low;
    return range == 0 ? 0.0 : (value - heatmap_.low) / range;
  }

  /// Labels of columns stand upright, read from top to bottom, their ends on one line.
  void column_labels() {
    if (heatmap_.column_labels.empty()) return;
    Index height = 0;
    for (Index column = 0; column < shown_columns_; ++column) {
      height = std::max(height, text_width(label(column)));
    }
    for (Index line = 0; line < height; ++line) {
      std::string out(static_cast<std::size_t>(label_width_ + 1), ' ');
      for (Index column = 0; column < shown_columns_; ++column) {
        const auto letters = characters(label(column));
        const Index at = line - (height - static_cast<Index>(letters.size()));
        const Index before = cell_width_ == 4 ? 1 : 0;
        out.append(static_cast<std::size_t>(before), ' ');
        out += at < 0 ? " " : letters[static_cast<std::size_t>(at)];
        out.append(static_cast<std::size_t>(cell_width_ - before - 1), ' ');
      }
      while (!out.empty() && out.back() == ' ') out.pop_back();
      text_ += out + "\n";
    }
  }
  const std::string& label(Index column) const {
    return heatmap_.column_labels[static_cast<std::size_t>(column)];
  }

  void draw_row(Index row) {
    const auto& labels = heatmap_.row_labels;
    text_ += fitted(labels.empty() ? "" : labels[static_cast<std::size_t>(row)], label_width_);
    text_ += ' ';
    std::string out;
    for (Index column = 0; column < shown_columns_; ++column) {
      const double value = heatmap_.values(row, column);
      std::string cell(static_cast<std::size_t>(cell_width_), ' ');
      if (cell_width_ == 4) {
        const std::string number = cell_text(value);
        const Index pad = 4 - text_width(number);
        cell = std::string(static_cast<std::size_t>(pad - pad / 2), ' ') + number +
               std::string(static_cast<std::size_t>(pad / 2), ' ');
      } else if (options_.color == ColorDepth::none) {
        cell.assign(static_cast<std::size_t>(cell_width_), shade(value));
      }
      out += painted(cell, value);
    }
    if (options_.color == ColorDepth::none) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
    }
    text_ += out + "\n";
  }

  char shade(double value) const {
    constexpr std::string_view shades = " .:-=+*#%@";
    const double at = share(value) * 9.999;
    return value != value ? '?' : shades[static_cast<std::size_t>(at < 0 ? 0 : at > 9 ? 9 : at)];
  }

  std::string painted(const std::string& cell, double value) const {
    if (options_.color == ColorDepth::none) return cell;
    const Color back = viridis(share(value));
    return escape("48", back) + escape("38", text_color_on(back)) + cell + "\x1b[0m";
  }
  std::string escape(const char* ground, const Color& color) const {
    const std::string start = std::string("\x1b[") + ground;
    if (options_.color == ColorDepth::palette_256) {
      const auto level = [](int channel) { return (channel * 5 + 127) / 255; };
      return start + ";5;" +
             std::to_string(16 + 36 * level(color.red) + 6 * level(color.green) +
                            level(color.blue)) +
             "m";
    }
    return start + ";2;" + std::to_string(color.red) + ";" + std::to_string(color.green) + ";" +
           std::to_string(color.blue) + "m";
  }

  /// What the colors or shades mean; plain numbers need none.
  void color_bar() {
    std::string line;
    constexpr int steps = 20;
    for (int step = 0; step < steps; ++step) {
      const double value = heatmap_.low + (heatmap_.high - heatmap_.low) * step / (steps - 1);
      line +=
          options_.color == ColorDepth::none ? std::string(1, shade(value)) : painted(" ", value);
    }
    line = brief(heatmap_.low) + " " + line + " " + brief(heatmap_.high);
    if (cell_width_ == 4 && options_.color == ColorDepth::none) line.clear();
    if (cell_width_ == 4) line += line.empty() ? "· is exactly 0" : "   · is exactly 0";
    text_ += std::string(static_cast<std::size_t>(label_width_ + 1), ' ') + line + "\n";
  }

  const Heatmap& heatmap_;
  TerminalOptions options_;
  Index label_width_ = 0;
  Index cell_width_ = 2;
  Index shown_columns_ = 0;
  std::string text_;
};

}  // namespace detail

/// A heatmap as lines of text: rows of cells in color, or shades of characters where there is none,
/// with labels on both axes and a color bar. Numbers are shown where they fit the width.
inline std::string to_terminal(const Heatmap& heatmap,
                               const TerminalOptions& options = detect_terminal()) {
  return detail::TerminalHeatmap(heatmap, options).draw();
}

}  // namespace heed
