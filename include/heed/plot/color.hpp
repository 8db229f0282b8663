// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace heed {

/// An sRGB color with 8 bits per channel.
struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  friend bool operator==(const Color&, const Color&) = default;
};

/// How values become colors, from the lowest to the highest.
enum class ColorMap {
  viridis,    // dark blue, green, yellow
  magma,      // black, purple, pale yellow
  blues,      // white to dark blue
  gray,       // black to white
  diverging,  // blue, white at 0, red: for values with a sign
};

namespace detail {

/// The color at `share` in [0, 1] (clamped; NaN is gray) of colors an equal step apart.
template <std::size_t size>
Color between(const Color (&stops)[size], double share) {
  constexpr int last = static_cast<int>(size) - 1;
  if (!(share == share)) return {128, 128, 128};
  const double at = (share < 0 ? 0 : share > 1 ? 1 : share) * last;
  const int stop = at >= last ? last - 1 : static_cast<int>(at);
  const auto mix = [&](int from, int to) {
    return static_cast<std::uint8_t>(from + (to - from) * (at - stop) + 0.5);
  };
  const Color &a = stops[stop], &b = stops[stop + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace detail

/// The viridis color map at `share` in [0, 1] (clamped; NaN is gray): perceptually uniform and
/// readable for color-blind people. By van der Walt and Smith (CC0); 33 of its 256 colors,
/// interpolated linearly, at most two levels off in any channel.
inline Color viridis(double share) {
  constexpr Color stops[] = {
      {68, 1, 84},    {71, 13, 96},   {72, 24, 106},  {72, 35, 116},  {71, 45, 123},
      {69, 54, 129},  {66, 64, 134},  {63, 73, 137},  {59, 82, 139},  {55, 90, 141},
      {51, 99, 141},  {47, 106, 142}, {44, 114, 142}, {41, 122, 142}, {38, 129, 142},
      {35, 137, 142}, {33, 144, 140}, {31, 152, 139}, {31, 159, 136}, {33, 166, 133},
      {40, 174, 128}, {49, 181, 123}, {62, 188, 116}, {76, 194, 108}, {93, 201, 99},
      {110, 206, 88}, {130, 211, 76}, {150, 216, 63}, {171, 220, 50}, {192, 223, 36},
      {213, 226, 26}, {234, 229, 26}, {253, 231, 37}};
  return detail::between(stops, share);
}

/// A color map at `share` in [0, 1] (clamped; NaN is gray). Magma is by the authors of viridis
/// (CC0), blues and diverging are Brewer's "Blues" and "RdBu" (colorbrewer2.org).
inline Color color_of(ColorMap map, double share) {
  constexpr Color magma[] = {
      {0, 0, 4},       {3, 3, 18},      {10, 8, 34},     {19, 13, 52},    {29, 17, 71},
      {41, 17, 90},    {54, 16, 107},   {68, 15, 118},   {81, 18, 124},   {93, 23, 127},
      {106, 28, 129},  {118, 33, 129},  {131, 38, 129},  {144, 42, 129},  {156, 46, 127},
      {170, 51, 125},  {183, 55, 121},  {196, 60, 117},  {208, 65, 111},  {220, 72, 105},
      {231, 82, 99},   {239, 93, 94},   {245, 107, 92},  {249, 121, 93},  {252, 137, 97},
      {253, 152, 105}, {254, 167, 114}, {254, 182, 124}, {254, 196, 136}, {254, 211, 149},
      {253, 226, 163}, {252, 240, 178}, {252, 253, 191}};
  constexpr Color blues[] = {{247, 251, 255}, {222, 235, 247}, {198, 219, 239},
                             {157, 202, 225}, {106, 174, 214}, {65, 145, 198},
                             {32, 112, 180},  {8, 80, 155},    {8, 48, 107}};
  constexpr Color gray[] = {{0, 0, 0}, {255, 255, 255}};
  constexpr Color diverging[] = {{5, 48, 97},     {32, 101, 171},  {67, 147, 195},  {144, 196, 221},
                                 {209, 229, 240}, {247, 247, 247}, {253, 219, 199}, {243, 164, 129},
                                 {214, 96, 77},   {177, 24, 43},   {103, 0, 31}};
  switch (map) {
    case ColorMap::magma:
      return detail::between(magma, share);
    case ColorMap::blues:
      return detail::between(blues, share);
    case ColorMap::gray:
      return detail::between(gray, share);
    case ColorMap::diverging:
      return detail::between(diverging, share);
    case ColorMap::viridis:
      break;
  }
  return viridis(share);
}

/// The relative luminance of a color (WCAG 2), 0 black to 1 white.
inline double luminance(const Color& color) {
  const auto linear = [](std::uint8_t channel) {
    const double share = channel / 255.0;
    return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
}

/// The contrast of two colors, 1 (none) to 21; WCAG 2 asks for 4.5 in text.
inline double contrast(const Color& a, const Color& b) {
  const double first = luminance(a) + 0.05, second = luminance(b) + 0.05;
  return first > second ? first / second : second / first;
}

/// Black or white, whichever is easier to read on `background`; the contrast is at least 4.5.
inline Color text_color_on(const Color& background) {
  constexpr Color black{0, 0, 0}, white{255, 255, 255};
  return contrast(black, background) > contrast(white, background) ? black : white;
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
