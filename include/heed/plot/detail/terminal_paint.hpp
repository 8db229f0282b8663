// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <heed/plot/color.hpp>
#include <heed/plot/terminal_options.hpp>

namespace heed::detail {

/// The level of xterm's 6 × 6 × 6 color cube nearest to a channel.
inline int cube_level(std::uint8_t channel) {
  return channel < 48 ? 0 : channel < 115 ? 1 : (channel - 35) / 40;
}

/// A color as the terminal will show it.
inline Color shown_color(const Color& color, ColorDepth depth) {
  if (depth != ColorDepth::palette_256) return color;
  constexpr std::uint8_t levels[] = {0, 95, 135, 175, 215, 255};
  return {levels[cube_level(color.red)], levels[cube_level(color.green)],
          levels[cube_level(color.blue)]};
}

/// The escape that sets background ("48") or text ("38") color.
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

/// Text on a background, in black or white as it reads best; plain where there are no colors.
inline std::string painted(std::string_view text, const Color& back, ColorDepth depth) {
  if (depth == ColorDepth::none) return std::string(text);
  return escape("48", back, depth) + escape("38", text_color_on(shown_color(back, depth)), depth) +
         std::string(text) + "\x1b[0m";
}

/// Two cells in one character: the upper half in one color, the lower in another.
inline std::string half_blocks(const Color& upper, const Color& lower, ColorDepth depth) {
  return escape("38", upper, depth) + escape("48", lower, depth) + "▀\x1b[0m";
}

}  // namespace heed::detail
