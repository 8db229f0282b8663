// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <heed/core/index.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/heatmap.hpp>

namespace heed {

/// The colors of a terminal: none (characters as shades), xterm's palette, or all.
enum class ColorDepth { none, palette_256, true_color };

/// Options of to_terminal.
struct TerminalOptions {
  ColorDepth color = ColorDepth::none;
  Index width = 80;  // columns
};

// What terminal.hpp declares for all. Definitions: terminal_heatmap.inl, terminal_chart.inl.
namespace detail {

TerminalOptions terminal_at(int descriptor);
TerminalOptions terminal_with(std::string_view color, int descriptor);

/// The level of xterm's 6 × 6 × 6 color cube nearest to a channel.
inline int cube_level(std::uint8_t channel) {
  return channel < 48 ? 0 : channel < 115 ? 1 : (channel - 35) / 40;
}

/// The color that a terminal shows for a color.
Color shown_color(const Color& color, ColorDepth depth);

/// The escape sequence for the background ("48") or text ("38") color.
std::string escape(std::string_view ground, const Color& color, ColorDepth depth);

/// Text on a background, in black or white for contrast; plain without colors.
std::string painted(std::string_view text, const Color& back, ColorDepth depth);

/// Two cells in one character: its upper half and its lower half.
std::string half_blocks(const Color& upper, const Color& lower, ColorDepth depth);

/// Parts of a legend, in lines of at most `width` columns that begin with `indent` blanks. A part
/// may hold escapes.
std::string legend_lines(std::span<const std::string> parts, Index indent, Index width);

std::string terminal_text(std::span<const Heatmap> heatmaps, const TerminalOptions& options);
std::string terminal_text(const Chart& chart, const TerminalOptions& options);

}  // namespace detail

}  // namespace heed
