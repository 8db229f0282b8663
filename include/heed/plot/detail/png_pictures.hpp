// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/plot/detail/png_canvas.hpp>
#include <heed/plot/write_picture.hpp>

namespace heed::detail {

/// The bytes of one PNG file of pictures, `columns` of them in a row. Picture is made from an Item
/// and has width(), height() and draw(canvas, x, y).
template <class Picture, class Item>
std::string png_of_pictures(std::span<const Item> items, Index columns) {
  if (columns < 1) throw_invalid_argument("to_png: ", columns, " pictures in a row");
  std::vector<Picture> pictures;
  for (const Item& item : items) pictures.emplace_back(item);
  struct Corner {
    Index x, y;
  };
  std::vector<Corner> corners;
  Index width = 1, height = 0, x = 0, row_height = 1;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    if (i > 0 && i % static_cast<std::size_t>(columns) == 0) {
      height += row_height;
      x = row_height = 0;
    }
    corners.push_back({x, height});
    x += pictures[i].width();
    width = std::max(width, x);
    row_height = std::max(row_height, pictures[i].height());
  }
  height += row_height;
  if (width > PngCanvas::longest_side || height > PngCanvas::longest_side) {
    throw_shape_error("to_png: a picture of ", width, " x ", height, " pixels");
  }
  PngCanvas canvas(width, height);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    pictures[i].draw(canvas, corners[i].x, corners[i].y);
  }
  const auto bytes = canvas.encoded();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace heed::detail
