// SPDX-License-Identifier: MIT
#include <heed/plot/terminal.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace heed::detail {
namespace {

TEST(TerminalPaint, PaletteHasTheNearestColorOfTheCube) {
  constexpr int levels[] = {0, 95, 135, 175, 215, 255};
  for (int channel = 0; channel < 256; ++channel) {
    const int chosen = levels[cube_level(static_cast<std::uint8_t>(channel))];
    for (const int level : levels) {
      EXPECT_LE(std::abs(chosen - channel), std::abs(level - channel)) << channel;
    }
  }
}

TEST(TerminalPaint, Escapes) {
  const Color color{95, 135, 255};
  EXPECT_EQ(escape("48", color, ColorDepth::true_color), "\x1b[48;2;95;135;255m");
  EXPECT_EQ(escape("38", color, ColorDepth::palette_256), "\x1b[38;5;69m");
  EXPECT_EQ(painted("x", color, ColorDepth::none), "x");
  EXPECT_EQ(painted("x", {0, 0, 0}, ColorDepth::true_color),
            "\x1b[48;2;0;0;0m\x1b[38;2;255;255;255mx\x1b[0m");
  EXPECT_EQ(painted("x", {250, 250, 250}, ColorDepth::palette_256),
            "\x1b[48;5;231m\x1b[38;5;16mx\x1b[0m");
  EXPECT_EQ(half_blocks({255, 0, 0}, {0, 0, 255}, ColorDepth::true_color),
            "\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m▀\x1b[0m");
}

TEST(TerminalPaint, TextIsLegibleOnTheColorThatIsShown) {
  for (int step = 0; step <= 200; ++step) {
    const Color shown = shown_color(viridis(step / 200.0), ColorDepth::palette_256);
    EXPECT_GE(contrast(text_color_on(shown), shown), 4.5) << step;
  }
}

}  // namespace
}  // namespace heed::detail
