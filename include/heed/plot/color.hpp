// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// A color of 8 bits a channel.
struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  friend bool operator==(const Color&, const Color&) = default;
};

/// The viridis color map at `share` in [0, 1] (clamped; NaN is gray): perceptually even and legible
/// to color-blind readers. Seventeen stops of the map by van der Walt and Smith (CC0), joined by
/// straight lines.
inline Color viridis(double share) {
  constexpr int last = 16;
  constexpr Color stops[last + 1] = {{68, 1, 84},    {72, 24, 106},  {71, 45, 123},  {66, 64, 134},
                                     {59, 82, 139},  {51, 99, 141},  {44, 114, 142}, {38, 130, 142},
                                     {33, 145, 140}, {31, 160, 136}, {40, 174, 128}, {63, 188, 115},
                                     {94, 201, 98},  {132, 212, 75}, {173, 220, 48}, {216, 226, 25},
                                     {253, 231, 37}};
  if (!(share == share)) return {128, 128, 128};
  const double at = (share < 0 ? 0 : share > 1 ? 1 : share) * last;
  const int stop = at >= last ? last - 1 : static_cast<int>(at);
  const auto mix = [&](int from, int to) {
    return static_cast<std::uint8_t>(from + (to - from) * (at - stop) + 0.5);
  };
  const Color &a = stops[stop], &b = stops[stop + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

/// Black or white, whichever is easier to read on `background` (relative luminance, WCAG 2).
inline Color text_color_on(const Color& background) {
  const double light = 0.299 * background.red + 0.587 * background.green + 0.114 * background.blue;
  return light > 140 ? Color{0, 0, 0} : Color{255, 255, 255};
}

/// "#440154"
inline std::string hex(const Color& color) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "#";
  for (const std::uint8_t channel : {color.red, color.green, color.blue}) {
    text += digits[channel >> 4];
    text += digits[channel & 15];
  }
  return text;
}

}  // namespace heed
