// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/text.hpp>

// What SVG pictures are put together from. Lengths are in pixels.

namespace heed::detail {

/// Text as it may stand in XML.
inline std::string escaped(std::string_view text) {
  std::string result;
  for (const Glyph& glyph : glyphs(text)) {
    switch (glyph.bytes[0]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += glyph.bytes;
    }
  }
  return result;
}

/// ` name="value"`
inline std::string svg_attribute(std::string_view name, Index value) {
  return " " + std::string(name) + "=\"" + std::to_string(value) + "\"";
}

inline std::string svg_rectangle(Index x, Index y, Index width, Index height, const Color& color) {
  return "<rect" + svg_attribute("x", x) + svg_attribute("y", y) + svg_attribute("width", width) +
         svg_attribute("height", height) + " fill=\"" + hex(color) + "\"/>";
}

inline std::string svg_text(Index x, Index y, std::string_view words,
                            const std::string& attributes) {
  return "<text" + svg_attribute("x", x) + svg_attribute("y", y) + " " + attributes + ">" +
         escaped(words) + "</text>\n";
}

/// The attribute that turns an element around (x, y).
inline std::string svg_turned(int angle, Index x, Index y) {
  return "transform=\"rotate(" + std::to_string(angle) + " " + std::to_string(x) + " " +
         std::to_string(y) + ")\"";
}

/// A group whose corner is at (x, y).
inline std::string svg_group(Index x, Index y, const std::string& content) {
  return "<g transform=\"translate(" + std::to_string(x) + " " + std::to_string(y) + ")\">\n" +
         content + "</g>\n";
}

/// A whole file of pictures, `columns` of them in a row. Picture is made from an Item and has
/// width(), height() and content().
template <class Picture, class Item>
std::string svg_page(std::span<const Item> items, Index columns) {
  if (columns < 1) throw_invalid_argument("to_svg: ", columns, " pictures in a row");
  std::string body;
  Index width = 0, height = 0, x = 0, row_height = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i % static_cast<std::size_t>(columns) == 0) {
      height += row_height;
      x = row_height = 0;
    }
    Picture picture(items[i]);
    body += svg_group(x, height, picture.content());
    x += picture.width();
    width = std::max(width, x);
    row_height = std::max(row_height, picture.height());
  }
  height += row_height;
  const std::string size = std::to_string(width) + " " + std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) +
         "\" height=\"" + std::to_string(height) + "\" viewBox=\"0 0 " + size +
         "\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\" "
         "shape-rendering=\"crispEdges\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#fff\"/>\n" +
         body + "</svg>\n";
}

}  // namespace heed::detail
