// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/plot/color.hpp>
#include <heed/plot/detail/terminal_paint.hpp>
#include <heed/plot/detail/text.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/terminal_options.hpp>

namespace heed {

namespace detail {

/// A line of text and the columns it takes, which escapes make less than its length.
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

  /// What colors, characters and axes mean: one line, without a break.
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

  /// The richest form that fits: numbers, else square cells, else one column a cell (two rows to a
  /// line where there are colors), else means of blocks of cells.
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

  /// Labels of columns stand upright, read from top to bottom, their ends on one line.
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

/// Pictures next to each other, tops on one line.
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

/// Heatmaps as lines of text, as many side by side as the width holds: cells in color, or shades of
/// characters where there is none, labels on both axes, and a color bar for each run of pictures
/// that share a range. Numbers are shown where they fit. Throws ShapeError for labels that do not
/// fit their axis.
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

}  // namespace heed
