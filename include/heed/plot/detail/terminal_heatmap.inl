// SPDX-License-Identifier: MIT
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/detail/terminal_text.hpp>
#include <heed/plot/heatmap.hpp>

namespace heed::detail {

HEED_INLINE std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// The colors that the environment promises, if colors are wanted.
HEED_INLINE ColorDepth color_depth_of_environment() {
  const std::string_view depth = environment("COLORTERM"), terminal = environment("TERM");
  const bool exact = depth == "truecolor" || depth == "24bit" || terminal.ends_with("-direct");
  return exact ? ColorDepth::true_color : ColorDepth::palette_256;
}

HEED_INLINE TerminalOptions terminal_at(int descriptor) {
  TerminalOptions options;
  const bool terminal = isatty(descriptor) == 1;
  const std::string_view forced = environment("FORCE_COLOR");
  if (!forced.empty()) {
    options.color = forced == "0"   ? ColorDepth::none
                    : forced == "2" ? ColorDepth::palette_256
                    : forced == "3" ? ColorDepth::true_color
                                    : color_depth_of_environment();
  } else if (terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb") {
    options.color = color_depth_of_environment();
  }
  winsize size{};
  if (terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
  } else {
    Index columns = 0;
    for (const char digit : environment("COLUMNS")) {
      if (digit < '0' || digit > '9' || columns > 9999) return options;
      columns = columns * 10 + (digit - '0');
    }
    if (columns > 0) options.width = columns;
  }
  return options;
}

HEED_INLINE TerminalOptions terminal_with(std::string_view color, int descriptor) {
  TerminalOptions options = terminal_at(descriptor);
  if (color == "auto") return options;
  if (color == "never") {
    options.color = ColorDepth::none;
  } else if (color == "always") {
    options.color = color_depth_of_environment();
  } else if (color == "256") {
    options.color = ColorDepth::palette_256;
  } else if (color == "truecolor") {
    options.color = ColorDepth::true_color;
  } else {
    throw_invalid_argument("color '", color, "'; expected auto, always, never, 256 or truecolor");
  }
  return options;
}

HEED_INLINE Color shown_color(const Color& color, ColorDepth depth) {
  if (depth != ColorDepth::palette_256) return color;
  constexpr std::uint8_t levels[] = {0, 95, 135, 175, 215, 255};
  return {levels[cube_level(color.red)], levels[cube_level(color.green)],
          levels[cube_level(color.blue)]};
}

HEED_INLINE std::string escape(std::string_view ground, const Color& color, ColorDepth depth) {
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

HEED_INLINE std::string painted(std::string_view text, const Color& back, ColorDepth depth) {
  if (depth == ColorDepth::none) return std::string(text);
  return escape("48", back, depth) + escape("38", text_color_on(shown_color(back, depth)), depth) +
         std::string(text) + "\x1b[0m";
}

HEED_INLINE std::string half_blocks(const Color& upper, const Color& lower, ColorDepth depth) {
  return escape("38", upper, depth) + escape("48", lower, depth) + "▀\x1b[0m";
}

/// The width of a text in a terminal, without the escapes of its colors.
HEED_INLINE Index shown_width(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      at = text.find('m', at);
    } else {
      shown += text[at];
    }
  }
  return text_width(shown);
}

HEED_INLINE std::string legend_lines(std::span<const std::string> parts, Index indent,
                                     Index width) {
  std::string text;
  Index used = 0;
  for (const std::string& whole : parts) {
    const bool escapes = whole.find('\x1b') != std::string::npos;
    const Index room = std::max<Index>(width - indent, 1);
    const std::string part = escapes || text_width(whole) <= room ? whole : fitted(whole, room);
    const Index needed = shown_width(part);
    if (used > 0 && used + 3 + needed > width) {
      text += "\n";
      used = 0;
    }
    text += spaces(used > 0 ? 3 : indent) + part;
    used += (used > 0 ? 3 : indent) + needed;
  }
  return text.empty() ? text : text + "\n";
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
    if (!heatmap_.title.empty()) {
      add(fitted(heatmap_.title, std::min(options.width, text_width(heatmap_.title))));
    }
    column_labels();
    const Index step = half_blocks_ ? 2 : 1;
    for (Index row = 0; row < rows(); row += step) draw_row(row);
  }

  const std::vector<TerminalLine>& lines() const { return lines_; }
  Index width() const { return width_; }

  /// The legend of colors, characters and axes, in lines of at most `width` columns.
  std::string legend(Index width) const {
    std::vector<std::string> parts;
    const bool shades = depth_ == ColorDepth::none;
    const auto cut = [&](const std::string& words, Index before) {
      return fitted(words, std::min(std::max<Index>(1, width - before), text_width(words)));
    };
    if (!heatmap_.categories.empty()) {
      for (std::size_t i = 0; i < heatmap_.categories.size(); ++i) {
        const auto value = static_cast<double>(i);
        const std::string sample(2, shades ? shade(share_of(heatmap_, value)) : ' ');
        parts.push_back((shades ? "'" : "") + painted(sample, color(value), depth_) +
                        (shades ? "' " : " ") + cut(heatmap_.categories[i], shades ? 5 : 3));
      }
    } else if (!shades || cell_width_ <= 2) {
      parts.push_back(color_bar(width));
    }
    if (numbers_) {
      parts.push_back("· exactly 0");
    } else if (any_masked_) {
      const std::string sample = shades ? "' '" : painted(masked_sign(), masked_color, depth_);
      parts.push_back(sample + " " + cut(masked_meaning(heatmap_), 4));
    }
    parts.push_back("rows: " + text_of(heatmap_.row_title) +
                    ", columns: " + text_of(heatmap_.column_title));
    if (factor_ > 1) parts.push_back(shrunk_note(heatmap_, factor_, factor_));
    return legend_lines(parts, 0, width);
  }

 private:
  static constexpr Index longest_column_label = 14;

  Index rows() const { return heatmap_.values.extent(0); }
  Index columns() const { return heatmap_.values.extent(1); }
  static std::string text_of(std::string_view text) { return safe_text(text); }
  static constexpr Color masked_color{88, 88, 88};
  std::string masked_sign() const { return cell_width_ > 1 ? "╱╱" : " "; }

  std::string color_bar(Index width) const {
    const bool shades = depth_ == ColorDepth::none;
    const char* edge = shades ? "|" : "";  // of a bar that begins with spaces
    const auto [low, high] = range_of(heatmap_);
    std::string bar = brief(low) + " " + edge;
    const std::string scale = goes_by_root(heatmap_) ? " by root" : "";
    const Index words = text_width(brief(low) + brief(high) + scale);
    const Index steps = std::clamp<Index>(width - words - 4, 4, 16);
    for (Index step = 0; step < steps; ++step) {
      const double share = static_cast<double>(step) / static_cast<double>(steps - 1);
      bar += shades ? std::string(1, shade(share))
                    : painted(" ", color_of(heatmap_.colors, share), depth_);
    }
    return bar + edge + " " + brief(high) + scale;
  }

  /// The color of a value: gray for masked ones.
  Color color(double value) const {
    if (is_masked(heatmap_, value)) return masked_color;
    return color_of(heatmap_.colors, share_of(heatmap_, value));
  }

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
      if (factor_ > 1) heatmap_ = shrunk(heatmap_, factor_, factor_);
    }
    for (const double value : heatmap_.values) {
      any_masked_ = any_masked_ || is_masked(heatmap_, value);
    }
  }
  Index margin() const { return label_width_ == 0 ? 0 : label_width_ + 1; }

  void add(std::string text) {
    const Index width = text_width(text);
    add(TerminalLine{std::move(text), width});
  }
  void add(TerminalLine line) {
    width_ = std::max(width_, line.width);
    lines_.push_back(std::move(line));
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
    add(std::move(line));
  }

  std::string cell(Index row, Index column) const {
    const double value = heatmap_.values(row, column);
    if (half_blocks_) {
      if (row + 1 == rows()) return escape("38", color(value), depth_) + "▀\x1b[0m";
      return half_blocks(color(value), color(heatmap_.values(row + 1, column)), depth_);
    }
    if (!numbers_) {
      const bool plain = depth_ == ColorDepth::none, masked = is_masked(heatmap_, value);
      if (masked && !plain) return painted(masked_sign(), color(value), depth_);
      const char letter = plain && !masked ? shade(share_of(heatmap_, value)) : ' ';
      return painted(std::string(static_cast<std::size_t>(cell_width_), letter), color(value),
                     depth_);
    }
    const std::string number = cell_text(value);
    const Index left = (cell_width_ - text_width(number) + 1) / 2;
    return painted(spaces(left) + number + spaces(cell_width_ - left - text_width(number)),
                   color(value), depth_);
  }

  /// A space only where no cell is masked, which is a space otherwise.
  char shade(double share) const {
    constexpr std::string_view shades = " .:-=+*#%@";
    if (share != share) return '?';
    const double at = share * 9.999;
    return shades[static_cast<std::size_t>(std::clamp(at, any_masked_ ? 1.0 : 0.0, 9.0))];
  }

  Heatmap heatmap_;
  ColorDepth depth_;
  Index label_width_ = 0;
  Index cell_width_ = 2;
  Index factor_ = 1;
  bool numbers_ = false;
  bool half_blocks_ = false;
  bool any_masked_ = false;
  std::vector<TerminalLine> lines_;
  Index width_ = 0;  // of the widest line
};

/// Pictures side by side, aligned at the top.
HEED_INLINE std::string beside(std::span<const TerminalHeatmap> pictures, Index gap) {
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

HEED_INLINE std::string terminal_text(std::span<const Heatmap> heatmaps,
                                      const TerminalOptions& options) {
  constexpr Index gap = 3;
  std::vector<TerminalHeatmap> pictures;
  for (const Heatmap& heatmap : heatmaps) pictures.emplace_back(heatmap, options);
  std::string text;
  for (std::size_t first = 0; first < pictures.size();) {
    std::size_t count = 1;
    Index width = pictures[first].width();
    while (first + count < pictures.size() &&
           width + gap + pictures[first + count].width() <= options.width) {
      width += gap + pictures[first + count++].width();
    }
    text += beside(std::span(pictures).subspan(first, count), gap);
    for (const std::size_t end = first + count; first < end; ++first) {
      const std::string legend = pictures[first].legend(options.width);
      const bool last = first + 1 == pictures.size();
      if (last || pictures[first + 1].legend(options.width) != legend) text += legend;
    }
    if (first < pictures.size()) text += "\n";
  }
  return text;
}

}  // namespace heed::detail
