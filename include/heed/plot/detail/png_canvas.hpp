// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/text.hpp>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#ifndef INCLUDE_STB_EASY_FONT_H
#if __has_include(<stb/stb_easy_font.h>)
#include <stb/stb_easy_font.h>
#else
#include <stb_easy_font.h>
#endif
#endif
#ifndef INCLUDE_STB_IMAGE_WRITE_H
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#if __has_include(<stb/stb_image_write.h>)
#include <stb/stb_image_write.h>
#else
#include <stb_image_write.h>
#endif
#endif
#pragma GCC diagnostic pop

namespace heed::detail {

/// White paper of pixels with rectangles, lines and letters. What falls outside is not drawn.
class PngCanvas {
 public:
  /// Pixels of the page to one pixel of the font, which has no finer form.
  static constexpr Index font_scale = 2;
  static constexpr Index letter_height = 7 * font_scale;
  /// Pixels a side of a file has at most.
  static constexpr Index longest_side = 1 << 15;

  PngCanvas(Index width, Index height)
      : width_(width),
        height_(height),
        pixels_(static_cast<std::size_t>(width * height * 3), std::uint8_t{255}) {}

  Index width() const { return width_; }
  Index height() const { return height_; }
  Color at(Index x, Index y) const {
    const std::uint8_t* pixel = pixels_.data() + (y * width_ + x) * 3;
    return {pixel[0], pixel[1], pixel[2]};
  }

  void rectangle(Index x, Index y, Index width, Index height, const Color& color) {
    const Index right = std::min(x + width, width_), bottom = std::min(y + height, height_);
    for (Index row = std::max<Index>(y, 0); row < bottom; ++row) {
      for (Index column = std::max<Index>(x, 0); column < right; ++column) {
        std::uint8_t* pixel = pixels_.data() + (row * width_ + column) * 3;
        pixel[0] = color.red;
        pixel[1] = color.green;
        pixel[2] = color.blue;
      }
    }
  }

  /// A line with round ends and smooth edges between two points.
  void line(double x0, double y0, double x1, double y1, double thickness, const Color& color) {
    const double reach = thickness / 2 + 0.5;
    const double dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
    const auto first = [&](double a, double b) {
      return std::max<Index>(0, static_cast<Index>(std::min(a, b) - reach));
    };
    const auto last = [&](double a, double b, Index extent) {
      return std::min(extent - 1, static_cast<Index>(std::max(a, b) + reach));
    };
    for (Index row = first(y0, y1); row <= last(y0, y1, height_); ++row) {
      for (Index column = first(x0, x1); column <= last(x0, x1, width_); ++column) {
        const double x = static_cast<double>(column) + 0.5 - x0;
        const double y = static_cast<double>(row) + 0.5 - y0;
        const double along = square == 0 ? 0 : std::clamp((x * dx + y * dy) / square, 0., 1.);
        const double away = std::hypot(x - along * dx, y - along * dy);
        blend(column, row, std::clamp(reach - away, 0., 1.), color);
      }
    }
  }

  /// The width of a text in pixels.
  static Index text_length(std::string_view text) {
    std::string letters = plain(text);
    return font_scale * stb_easy_font_width(letters.data());
  }
  /// Text with its top left corner at (x, y).
  void text(Index x, Index y, std::string_view words, const Color& color) {
    for_each_box(words, [&](Index left, Index top, Index width, Index height) {
      rectangle(x + left, y + top, width, height, color);
    });
  }
  /// Text that reads upwards, its bottom left corner at (x, y).
  void text_upwards(Index x, Index y, std::string_view words, const Color& color) {
    for_each_box(words, [&](Index left, Index top, Index width, Index height) {
      rectangle(x + top, y - left - width, height, width, color);
    });
  }

  /// The picture as the bytes of a PNG file, empty if it is too large for one.
  std::vector<std::byte> encoded() const {
    struct Collected {
      std::vector<std::byte> bytes;
      std::exception_ptr error;
    } all;
    if (width_ > longest_side || height_ > longest_side) return all.bytes;
    // Nothing is thrown through stb, which would not free what it holds.
    const auto collect = [](void* context, void* data, int size) {
      const auto* begin = static_cast<const std::byte*>(data);
      auto& to = *static_cast<Collected*>(context);
      try {
        to.bytes.insert(to.bytes.end(), begin, begin + size);
      } catch (...) {
        to.error = std::current_exception();
      }
    };
    stbi_write_png_to_func(collect, &all, static_cast<int>(width_), static_cast<int>(height_), 3,
                           pixels_.data(), static_cast<int>(width_ * 3));
    if (all.error) std::rethrow_exception(all.error);
    return all.bytes;
  }

 private:
  void blend(Index x, Index y, double share, const Color& color) {
    std::uint8_t* pixel = pixels_.data() + (y * width_ + x) * 3;
    for (const std::uint8_t channel : {color.red, color.green, color.blue}) {
      *pixel = static_cast<std::uint8_t>(*pixel + share * (channel - *pixel) + 0.5);
      ++pixel;
    }
  }

  /// The font knows ASCII; "?" stands for what it does not, a point for the middle one.
  static std::string plain(std::string_view text) {
    std::string result;
    for (const Glyph& glyph : glyphs(text)) {
      const bool known = glyph.bytes.size() == 1;
      result += known ? glyph.bytes[0] : glyph.bytes == "·" ? '.' : '?';
    }
    return result;
  }

  /// Calls draw(left, top, width, height) for the boxes that letters are made of.
  template <class Draw>
  static void for_each_box(std::string_view words, const Draw& draw) {
    std::string letters = plain(words);
    constexpr std::size_t corner_bytes = 16, box_bytes = 4 * corner_bytes;
    std::vector<char> corners(letters.size() * 40 * box_bytes + box_bytes);
    const int boxes = stb_easy_font_print(0, 0, letters.data(), nullptr, corners.data(),
                                          static_cast<int>(corners.size()));
    for (int box = 0; box < boxes; ++box) {
      float first[2], third[2];
      const char* begin = corners.data() + static_cast<std::size_t>(box) * box_bytes;
      std::memcpy(first, begin, sizeof(first));
      std::memcpy(third, begin + 2 * corner_bytes, sizeof(third));
      draw(static_cast<Index>(first[0]) * font_scale, static_cast<Index>(first[1]) * font_scale,
           static_cast<Index>(third[0] - first[0]) * font_scale,
           static_cast<Index>(third[1] - first[1]) * font_scale);
    }
  }

  Index width_, height_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace heed::detail
