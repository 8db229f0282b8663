// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <heed/core/index.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/detail/terminal_text.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// The abilities of the terminal at `descriptor`. No escapes if it is not a terminal, or with
/// NO_COLOR or TERM=dumb. FORCE_COLOR overrides all three: 0 for none, 2 for 256 colors, 3 for all,
/// and anything else for the colors that COLORTERM and TERM name.
/// The width comes from the terminal, otherwise from COLUMNS, otherwise it is 80. Conventions of
/// no-color.org and force-color.org.
inline TerminalOptions detect_terminal(int descriptor = 1) {
  return detail::terminal_at(descriptor);
}

/// detect_terminal with colors chosen by a word, for a program's --color option: "auto", "always",
/// "never", "256", "truecolor". Throws InvalidArgument for any other word.
inline TerminalOptions terminal_options(std::string_view color, int descriptor = 1) {
  return detail::terminal_with(color, descriptor);
}

/// Heatmaps as lines of text, as many side by side as fit the width: cells in color, or characters
/// as shades without colors, labels on both axes, and one color bar for consecutive pictures with
/// the same range. Numbers are shown where they fit. Throws ShapeError for labels that are not one
/// per row or column, and InvalidArgument for an invalid range.
inline std::string to_terminal(std::span<const Heatmap> heatmaps,
                               const TerminalOptions& options = detect_terminal()) {
  return detail::terminal_text(heatmaps, options);
}

/// One heatmap as lines of text.
inline std::string to_terminal(const Heatmap& heatmap,
                               const TerminalOptions& options = detect_terminal()) {
  return detail::terminal_text(std::span(&heatmap, 1), options);
}

template <Viewable Matrix>
requires std::is_arithmetic_v<ValueOf<Matrix>> std::string to_terminal(const Matrix&) {
  static_assert(detail::never<Matrix>,
                "a picture is a Heatmap or a Chart: heatmap_of(matrix) makes one");
  return {};
}

/// A chart as lines of text, with axes, ticks and a legend, no wider than the terminal. Throws
/// ShapeError for a series with unequal numbers of x and y, and InvalidArgument for an invalid
/// range.
inline std::string to_terminal(const Chart& chart,
                               const TerminalOptions& options = detect_terminal()) {
  return detail::terminal_text(chart, options);
}

/// Charts, one below the other.
inline std::string to_terminal(std::span<const Chart> charts,
                               const TerminalOptions& options = detect_terminal()) {
  std::string text;
  for (const Chart& chart : charts)
    text += (text.empty() ? "" : "\n") + to_terminal(chart, options);
  return text;
}

}  // namespace heed

#include <heed/definitions/plot.hpp>
