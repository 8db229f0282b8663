// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>

namespace heed::detail {

HEED_INLINE std::string escaped(std::string_view text) {
  std::string result;
  for (const char& byte : safe_text(text)) {
    result += byte == '&'   ? "&amp;"
              : byte == '<' ? "&lt;"
              : byte == '>' ? "&gt;"
              : byte == '"' ? "&quot;"
                            : std::string_view(&byte, 1);
  }
  return result;
}

HEED_INLINE std::string base64_of(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t pending = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      pending = pending << 8 | (at + i < bytes.size() ? bytes[at + i] : 0u);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool padding = at + digit > bytes.size();
      text += padding ? '=' : digits[pending >> (18 - 6 * digit) & 63];
    }
  }
  return text;
}

/// A PNG of the cells, one pixel each, with a palette and without compression: RFC 2083, RFC 1950.
class TinyPng {
 public:
  explicit TinyPng(const PictureCells& cells) {
    for (const std::uint32_t byte : {137u, 80u, 78u, 71u, 13u, 10u, 26u, 10u}) add(byte);
    begin("IHDR", 13);
    number(static_cast<std::uint32_t>(cells.columns));
    number(static_cast<std::uint32_t>(cells.rows));
    for (const std::uint32_t byte : {8u, 3u, 0u, 0u, 0u}) add(byte);  // a palette of 8 bits
    end();
    begin("PLTE", 3 * cells.palette.size());
    for (const Color& color : cells.palette) {
      for (const std::uint8_t channel : {color.red, color.green, color.blue}) add(channel);
    }
    end();
    add_pixels(cells);
    begin("IEND", 0);
    end();
  }

  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  void add(std::uint32_t byte) { bytes_.push_back(static_cast<std::uint8_t>(byte & 255)); }
  void number(std::uint32_t value) {
    for (const int shift : {24, 16, 8, 0}) add(value >> shift);
  }
  void begin(std::string_view name, std::size_t size) {
    number(static_cast<std::uint32_t>(size));
    start_ = bytes_.size();
    for (const char letter : name) add(static_cast<std::uint32_t>(letter));
  }
  /// Ends a chunk with the check sum of its name and its bytes.
  void end() {
    std::array<std::uint32_t, 256> table;
    for (std::uint32_t i = 0; i < 256; ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit) {
        table[i] = (table[i] & 1 ? 0xedb88320u : 0u) ^ table[i] >> 1;
      }
    }
    std::uint32_t sum = 0xffffffffu;
    for (std::size_t i = start_; i < bytes_.size(); ++i) {
      sum = table[(sum ^ bytes_[i]) & 255] ^ sum >> 8;
    }
    number(~sum);
  }

  /// Every row is a stored block: its size twice, the filter 0, and the levels.
  void add_pixels(const PictureCells& cells) {
    const auto rows = static_cast<std::size_t>(cells.rows);
    const auto columns = static_cast<std::size_t>(cells.columns);
    begin("IDAT", rows * (columns + 6) + 6);
    add(0x78);
    add(0x01);
    std::uint32_t first = 1, second = 0;  // Adler-32
    const auto data = [&](std::uint32_t byte) {
      add(byte);
      first = (first + byte) % 65521;
      second = (second + first) % 65521;
    };
    for (std::size_t row = 0; row < rows; ++row) {
      const auto size = static_cast<std::uint32_t>(columns + 1);
      add(row + 1 == rows);
      for (const std::uint32_t part : {size, size >> 8, ~size, ~size >> 8}) add(part);
      data(0);
      for (std::size_t column = 0; column < columns; ++column) {
        data(cells.levels[row * columns + column]);
      }
    }
    number(second << 16 | first);
    end();
  }

  std::string::size_type start_ = 0;
  std::vector<std::uint8_t> bytes_;
};

/// Writes a picture as SVG elements.
class SvgWriter {
 public:
  explicit SvgWriter(const Picture& picture) {
    for (const PictureCells& cells : picture.cells) draw(cells);
    for (const PictureBox& box : picture.boxes) {
      text_ += "<rect" + at(box.at) + attribute("width", box.width) +
               attribute("height", box.height) + " fill=\"" + hex(box.color) + "\"" +
               (box.title.empty() ? "/>\n" : ">" + titled(box.title) + "</rect>\n");
    }
    for (const PictureLine& line : picture.lines) draw(line);
    text_ += "<g shape-rendering=\"auto\" stroke-width=\"1.6\">\n";
    for (const PictureMark& mark : picture.marks) draw(mark);
    text_ += "</g>\n";
    for (const PictureText& text : picture.texts) draw(text);
  }

  const std::string& text() const { return text_; }

 private:
  /// A coordinate with as few digits as it needs: 12 or 12.5.
  static std::string real(double value) {
    std::string text = fixed(value, 1);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text == "-0" ? "0" : text;
  }
  static std::string attribute(std::string_view name, double value) {
    return " " + std::string(name) + "=\"" + real(value) + "\"";
  }
  static std::string at(const Point& point) {
    return attribute("x", point.x) + attribute("y", point.y);
  }
  static std::string place(const Point& point) { return real(point.x) + " " + real(point.y); }
  static std::string titled(const std::string& title) {
    return "<title>" + escaped(title) + "</title>";
  }

  void draw(const PictureCells& cells) {
    if (cells.titles.empty() && cells.rows * cells.columns > 1) {
      text_ += "<image" + at(cells.at) +
               attribute("width", static_cast<double>(cells.cell_width * cells.columns)) +
               attribute("height", static_cast<double>(cells.cell_height * cells.rows)) +
               " preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
               "href=\"data:image/png;base64," +
               base64_of(TinyPng(cells).bytes()) + "\"/>\n";
      return;
    }
    const auto width = static_cast<double>(cells.cell_width);
    const auto height = static_cast<double>(cells.cell_height);
    const std::string size = "h" + real(width) + "v" + real(height) + "h-" + real(width) + "z";
    const std::string hatch = "l" + real(width) + " -" + real(height);
    std::string hatches;
    for (Index cell = 0; cell < cells.rows * cells.columns; ++cell) {
      const auto i = static_cast<std::size_t>(cell);
      const Point corner = cells.corner(cell);
      text_ += "<path d=\"M" + place(corner) + size + "\" fill=\"" + hex(cells.color(cell)) + "\"" +
               (cells.titles.empty() ? "/>\n" : ">" + titled(cells.titles[i]) + "</path>\n");
      if (cells.hatched && cells.levels[i] == PictureCells::masked) {
        hatches += "M" + place({corner.x, corner.y + height}) + hatch;
      }
    }
    if (hatches.empty()) return;
    text_ += "<path stroke=\"" + hex(hatch_color) +
             "\" shape-rendering=\"auto\" pointer-events=\"none\" d=\"" + hatches + "\"/>\n";
  }

  void draw(const PictureLine& line) {
    std::string path;
    for (const Point& point : line.points) path += (path.empty() ? "M" : "L") + place(point);
    text_ += "<path fill=\"none\" stroke=\"" + hex(line.color) + "\"";
    if (line.width != 1) {
      text_ += attribute("stroke-width", line.width) +
               " shape-rendering=\"auto\" stroke-linejoin=\"round\"";
    }
    if (line.dash > 0) {
      text_ += " stroke-dasharray=\"";
      for (const double part : dash_patterns[line.dash]) text_ += real(part) + " ";
      text_.back() = '"';
    }
    text_ += " d=\"" + path + "\"/>\n";
  }

  void draw(const PictureMark& mark) {
    std::string path = "M" + real(mark.at.x - 3.5) + " " + real(mark.at.y) +
                       "a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z";
    const auto corners = mark_corners(mark.shape);
    if (!corners.empty()) {
      path.clear();
      for (const Point& corner : corners) {
        path += (path.empty() ? "M" : "L") + place({mark.at.x + corner.x, mark.at.y + corner.y});
      }
      path += "z";
    }
    // A cross is a surface and not a line.
    const std::string fill = mark.shape % mark_shapes == 1 ? hex(mark.color) : "#fff";
    text_ += "<path d=\"" + path + "\"" +
             (mark.visible ? " fill=\"" + fill + "\" stroke=\"" +
                                 (fill == "#fff" ? hex(mark.color) : "none") + "\""
                           : " fill-opacity=\"0\" pointer-events=\"all\"") +
             (mark.title.empty() ? "/>\n" : ">" + titled(mark.title) + "</path>\n");
  }

  void draw(const PictureText& text) {
    text_ += "<text" + at(text.at);
    if (text.size != 13) text_ += attribute("font-size", text.size);
    if (text.anchor > 0) {
      text_ += text.anchor == 0.5 ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
    }
    if (text.bold) text_ += " font-weight=\"600\"";
    if (!(text.color == ink)) text_ += " fill=\"" + hex(text.color) + "\"";
    if (text.angle != 0) {
      text_ += " transform=\"rotate(-" + std::to_string(text.angle) + " " + place(text.at) + ")\"";
    }
    text_ += ">" + escaped(text.words) + "</text>\n";
  }

  std::string text_;
};

HEED_INLINE std::string svg_of(const Picture& picture) {
  const std::string width = std::to_string(picture.width), height = std::to_string(picture.height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
         "\" viewBox=\"0 0 " + width + " " + height +
         "\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\" "
         "shape-rendering=\"crispEdges\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#fff\"/>\n" +
         SvgWriter(picture).text() + "</svg>\n";
}

}  // namespace heed::detail
