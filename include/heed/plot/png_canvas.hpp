// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/text.hpp>

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

/// White paper of pixels with rectangles and letters. What falls outside is not drawn.
class PngCanvas {
 public:
  /// Pixels of the page to one pixel of the font, which has no finer form.
  static constexpr Index font_scale = 2;
  static constexpr Index letter_height = 7 * font_scale;

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
    std::vector<std::byte> bytes;
    constexpr Index most = 1 << 15;
    if (width_ > most || height_ > most) return bytes;
    const auto collect = [](void* context, void* data, int size) {
      const auto* begin = static_cast<const std::byte*>(data);
      auto& all = *static_cast<std::vector<std::byte>*>(context);
      all.insert(all.end(), begin, begin + size);
    };
    stbi_write_png_to_func(collect, &bytes, static_cast<int>(width_), static_cast<int>(height_), 3,
                           pixels_.data(), static_cast<int>(width_ * 3));
    return bytes;
  }

 private:
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
