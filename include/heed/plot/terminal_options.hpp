// SPDX-License-Identifier: MIT
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// How colors reach a terminal: not at all (characters as shades), from xterm's palette, exactly.
enum class ColorDepth { none, palette_256, true_color };

/// What a text picture may use.
struct TerminalOptions {
  ColorDepth color = ColorDepth::none;
  Index width = 80;  // columns
};

namespace detail {

inline std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// Colors as the environment has them, given that some are wanted.
inline ColorDepth color_depth_of_environment() {
  const std::string_view depth = environment("COLORTERM"), terminal = environment("TERM");
  const bool exact = depth == "truecolor" || depth == "24bit" || terminal.ends_with("-direct");
  return exact ? ColorDepth::true_color : ColorDepth::palette_256;
}

}  // namespace detail

/// What the terminal behind `descriptor` can show. Not a terminal, NO_COLOR or TERM=dumb: no
/// escapes. FORCE_COLOR overrides all three: 0 for none, 2 and 3 for 256 and all colors. Width from
/// the terminal, else from COLUMNS, else 80. Conventions of no-color.org and force-color.org.
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

/// detect_terminal with the color decided by a word, for a program's --color: "auto", "always",
/// "never", "256", "truecolor". Throws InvalidArgument for another word.
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

}  // namespace heed
