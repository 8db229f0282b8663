// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb_image_write.h (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heed/io/file.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/heatmap.hpp>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
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

namespace heed {

/// Writes the cells of a heatmap, and a color bar beside them, as a PNG picture; `cell` pixels to a
/// cell, by default as many as make about 640 pixels. A PNG has no letters here: labels and numbers
/// are for to_svg and to_terminal. Throws FileError.
inline void write_png(const std::string& path, const Heatmap& heatmap, Index cell = 0) {
  const Index rows = heatmap.values.extent(0), columns = heatmap.values.extent(1);
  const Index longest = std::max<Index>(1, std::max(rows, columns));
  if (cell <= 0) cell = std::clamp<Index>(640 / longest, 1, 48);
  const Index height = std::max<Index>(1, rows * cell);
  const Index bar_begin = columns * cell + 12, width = bar_begin + 16;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height * 3), 255);
  const double range = heatmap.high - heatmap.low;
  for (Index y = 0; y < height; ++y) {
    for (Index x = 0; x < width; ++x) {
      double share = 1 - static_cast<double>(y) / static_cast<double>(height);
      if (x < columns * cell) {
        share = range == 0 ? 0 : (heatmap.values(y / cell, x / cell) - heatmap.low) / range;
      } else if (x < bar_begin) {
        continue;
      }
      const Color color = viridis(share);
      std::uint8_t* pixel = pixels.data() + (y * width + x) * 3;
      pixel[0] = color.red;
      pixel[1] = color.green;
      pixel[2] = color.blue;
    }
  }
  std::vector<std::byte> bytes;
  const auto collect = [](void* context, void* data, int size) {
    const auto* begin = static_cast<const std::byte*>(data);
    auto& all = *static_cast<std::vector<std::byte>*>(context);
    all.insert(all.end(), begin, begin + size);
  };
  if (stbi_write_png_to_func(collect, &bytes, static_cast<int>(width), static_cast<int>(height), 3,
                             pixels.data(), static_cast<int>(width * 3)) == 0) {
    throw_file_error(path, ": the picture could not be encoded");
  }
  write_file(path, bytes);
}

}  // namespace heed
