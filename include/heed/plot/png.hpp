// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/png_fonts.hpp>
#include <heed/plot/svg.hpp>

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
#elif __has_include(<stb_image_write.h>)
#include <stb_image_write.h>
#else
#error "heed/plot/png.hpp needs stb, which is not found: install libstb-dev (Debian, Ubuntu)"
#include <libstb-dev>  // stops the compiler here
#endif
#undef STB_IMAGE_WRITE_STATIC
#undef STB_IMAGE_WRITE_IMPLEMENTATION
namespace heed::detail {
// stb compresses each row in five ways. The first is as good for flat colors, in a third of the
// time.
[[maybe_unused]] static const int png_filter = stbi_write_force_png_filter = 0;
}  // namespace heed::detail
#endif
#pragma GCC diagnostic pop

namespace heed {

namespace detail {

/// A white canvas of pixels. Parts of what is drawn outside it are not drawn.
class PngCanvas {
 public:
  /// The most pixels along one side of a file.
  static constexpr Index longest_side = 1 << 15;
  static constexpr double most_pixels = 7e8;  // stb counts the bytes in an int

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
        blend(column, row, 1, color);
      }
    }
  }

  /// Draws a line with round ends and smooth edges.
  void line(const Point& from, const Point& to, double thickness, const Color& color) {
    const double reach = thickness / 2 + 0.5;
    const double dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy;
    const auto first = [&](double a, double b) {
      return std::max<Index>(0, static_cast<Index>(std::min(a, b) - reach));
    };
    const auto last = [&](double a, double b, Index extent) {
      return std::min(extent - 1, static_cast<Index>(std::max(a, b) + reach));
    };
    for (Index row = first(from.y, to.y); row <= last(from.y, to.y, height_); ++row) {
      for (Index column = first(from.x, to.x); column <= last(from.x, to.x, width_); ++column) {
        const double x = static_cast<double>(column) + 0.5 - from.x;
        const double y = static_cast<double>(row) + 0.5 - from.y;
        const double along = square == 0 ? 0 : std::clamp((x * dx + y * dy) / square, 0., 1.);
        const double away = std::hypot(x - along * dx, y - along * dy);
        blend(column, row, std::clamp(reach - away, 0., 1.), color);
      }
    }
  }

  /// Fills an outline with smooth edges: its point p goes to origin + p.x · right + p.y · down.
  void fill(const Outline& outline, const Point& origin, const Point& right, const Point& down,
            const Color& color) {
    if (outline.pieces.empty()) return;
    const auto place = [&](Point& p) {
      p = {origin.x + p.x * right.x + p.y * down.x, origin.y + p.x * right.y + p.y * down.y};
    };
    Outline placed = outline;
    Point first{1e9, 1e9}, last{-1e9, -1e9};
    for (auto& piece : placed.pieces) {
      // Where a piece has no such point, its end takes the place, inside of all others.
      if (piece.kind < 3) piece.first = piece.to;
      if (piece.kind < 4) piece.second = piece.to;
      for (Point* p : {&piece.to, &piece.first, &piece.second}) {
        place(*p);
        first = {std::min(first.x, p->x), std::min(first.y, p->y)};
        last = {std::max(last.x, p->x), std::max(last.y, p->y)};
      }
    }
    const double most = 1000;  // pixels of a letter, for stb's 16 bits
    const double wide = last.x - first.x, high = last.y - first.y;
    if (!(wide >= 0 && wide < most && high >= 0 && high < most)) return;
    first = {std::floor(first.x), std::floor(first.y)};
    const auto width = static_cast<std::size_t>(last.x - first.x) + 2;
    const auto height = static_cast<std::size_t>(last.y - first.y) + 2;
    const std::vector<unsigned char> shares = coverage(placed, first, width, height);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      blend(static_cast<Index>(first.x) + static_cast<Index>(i % width),
            static_cast<Index>(first.y) + static_cast<Index>(i / width), shares[i] / 255.0, color);
    }
  }

  /// The bytes of a PNG file; empty if the picture is too large for one, or for the memory.
  std::vector<std::byte> encoded() const {
    struct Collected {
      std::vector<std::byte> bytes;
      std::exception_ptr error;
    } all;
    if (width_ > longest_side || height_ > longest_side) return all.bytes;
    // No exception may pass through stb, which would leak its memory.
    const auto collect = [](void* context, void* data, int size) {
      const auto* begin = static_cast<const std::byte*>(data);
      auto& to = *static_cast<Collected*>(context);
      handled<std::exception>([&] { to.bytes.insert(to.bytes.end(), begin, begin + size); },
                              [&](const std::exception&) { to.error = std::current_exception(); });
    };
    stbi_write_png_to_func(collect, &all, static_cast<int>(width_), static_cast<int>(height_), 3,
                           pixels_.data(), static_cast<int>(width_ * 3));
    if (all.error) std::rethrow_exception(all.error);
    return all.bytes;
  }

 private:
  /// How much of each pixel of a box, 0 to 255, lies in an outline.
  static std::vector<unsigned char> coverage(const Outline& outline, const Point& corner,
                                             std::size_t width, std::size_t height) {
    constexpr double fine = 32;  // stb has whole numbers
    std::vector<stbtt_vertex> vertices;
    for (const auto& piece : outline.pieces) {
      const auto whole = [&](const Point& at, stbtt_int16& x, stbtt_int16& y) {
        x = static_cast<stbtt_int16>(std::lround((at.x - corner.x) * fine));
        y = static_cast<stbtt_int16>(std::lround((at.y - corner.y) * fine));
      };
      stbtt_vertex vertex = {};
      vertex.type = static_cast<unsigned char>(piece.kind);
      whole(piece.to, vertex.x, vertex.y);
      whole(piece.first, vertex.cx, vertex.cy);
      whole(piece.second, vertex.cx1, vertex.cy1);
      vertices.push_back(vertex);
    }
    std::vector<unsigned char> shares(width * height);
    stbtt__bitmap bitmap = {static_cast<int>(width), static_cast<int>(height),
                            static_cast<int>(width), shares.data()};
    constexpr auto scale = static_cast<float>(1 / fine);
    stbtt_Rasterize(&bitmap, 0.2f, vertices.data(), static_cast<int>(vertices.size()), scale, scale,
                    0, 0, 0, 0, 0, nullptr);
    return shares;
  }

  void blend(Index x, Index y, double share, const Color& color) {
    if (share <= 0 || x < 0 || y < 0 || x >= width_ || y >= height_) return;
    std::uint8_t* pixel = pixels_.data() + (y * width_ + x) * 3;
    for (const std::uint8_t channel : {color.red, color.green, color.blue}) {
      *pixel = static_cast<std::uint8_t>(*pixel + share * (channel - *pixel) + 0.5);
      ++pixel;
    }
  }

  Index width_, height_;
  std::vector<std::uint8_t> pixels_;
};

/// Draws a picture on a canvas.
class PngWriter {
 public:
  PngWriter(const Picture& picture, const PngOptions& options)
      : scale_(options.scale),
        fonts_(options),
        canvas_(pixels(static_cast<double>(picture.width)),
                pixels(static_cast<double>(picture.height))) {
    for (const PictureCells& cells : picture.cells) draw(cells);
    for (const PictureBox& box : picture.boxes) {
      draw_box(box.at, {box.at.x + box.width, box.at.y + box.height}, box.color);
    }
    for (const PictureLine& line : picture.lines) draw(line);
    for (const PictureMark& mark : picture.marks) {
      if (mark.visible) draw(mark);
    }
    for (const PictureText& text : picture.texts) draw(text);
    if (options.note != nullptr) *options.note = fonts_.note();
  }

  const PngCanvas& canvas() const { return canvas_; }

 private:
  /// At least one: an empty picture is a pixel.
  Index pixels(double length) const {
    return std::max<Index>(1, static_cast<Index>(std::ceil(length * scale_ - 1e-9)));
  }
  Point scaled(const Point& point) const { return {point.x * scale_, point.y * scale_}; }

  void draw_box(const Point& from, const Point& to, const Color& color) {
    const auto x = static_cast<Index>(std::lround(from.x * scale_));
    const auto y = static_cast<Index>(std::lround(from.y * scale_));
    canvas_.rectangle(x, y, std::lround(to.x * scale_) - x, std::lround(to.y * scale_) - y, color);
  }

  void draw(const PictureCells& cells) {
    const auto width = static_cast<double>(cells.cell_width);
    const auto height = static_cast<double>(cells.cell_height);
    for (Index cell = 0; cell < cells.rows * cells.columns; ++cell) {
      const Point from = cells.corner(cell);
      draw_box(from, {from.x + width, from.y + height}, cells.color(cell));
      if (!cells.hatched) continue;
      if (cells.levels[static_cast<std::size_t>(cell)] != PictureCells::masked) continue;
      const double inside = 0.5;  // so that the ends stay in the cell
      canvas_.line(scaled({from.x + inside, from.y + height - inside}),
                   scaled({from.x + width - inside, from.y + inside}), scale_, hatch_color);
    }
  }

  void draw(const PictureLine& line) {
    const double width = line.width * scale_;
    for (std::size_t i = 1; i < line.points.size(); ++i) {
      const Point &a = line.points[i - 1], &b = line.points[i];
      if (line.width == 1 && (a.x == b.x || a.y == b.y)) {  // sharp
        const double x = std::floor(std::min(a.x, b.x)), y = std::floor(std::min(a.y, b.y));
        draw_box({x, y},
                 {a.x == b.x ? x + 1 : std::max(a.x, b.x), a.y == b.y ? y + 1 : std::max(a.y, b.y)},
                 line.color);
      } else if (line.dash == 0) {
        canvas_.line(scaled(a), scaled(b), width, line.color);
      }
    }
    if (line.dash > 0) draw_dashes(line, width);
  }

  void draw_dashes(const PictureLine& line, double width) {
    const auto& pattern = dash_patterns[line.dash];
    std::size_t part = 0;
    double left = pattern[0];
    for (std::size_t i = 1; i < line.points.size(); ++i) {
      Point a = line.points[i - 1];
      const Point b = line.points[i];
      double length = std::hypot(b.x - a.x, b.y - a.y);
      while (length > 0) {
        const double step = std::min(left, length), along = step / length;
        const Point next{a.x + along * (b.x - a.x), a.y + along * (b.y - a.y)};
        if (part % 2 == 0) canvas_.line(scaled(a), scaled(next), width, line.color);
        a = next;
        length -= step;
        left -= step;
        if (left <= 1e-9) left = pattern[++part % 4];
      }
    }
  }

  void draw(const PictureMark& mark) {
    const Point center = scaled(mark.at);
    const auto corners = mark_corners(mark.shape);
    if (corners.empty()) {
      canvas_.line(center, center, 8.6 * scale_, mark.color);
      canvas_.line(center, center, 5.4 * scale_, {255, 255, 255});
      return;
    }
    Outline shape;
    for (const Point& corner : corners) {
      shape.pieces.push_back({shape.pieces.empty() ? 1 : 2, corner, {}, {}});
    }
    shape.pieces.push_back({2, corners.front(), {}, {}});
    const bool cross = mark.shape % mark_shapes == 1;
    canvas_.fill(shape, center, {scale_, 0}, {0, scale_},
                 cross ? mark.color : Color{255, 255, 255});
    for (std::size_t i = 0; !cross && i < corners.size(); ++i) {
      const Point &a = corners[i], &b = corners[(i + 1) % corners.size()];
      canvas_.line(scaled({mark.at.x + a.x, mark.at.y + a.y}),
                   scaled({mark.at.x + b.x, mark.at.y + b.y}), 1.6 * scale_, mark.color);
    }
  }

  /// Draws letters no wider than the place that was measured for them.
  void draw(const PictureText& text) {
    std::vector<Outline> outlines;
    double ems = 0;
    for (const Glyph& glyph : glyphs(text.words)) {
      outlines.push_back(fonts_.outline(glyph));
      ems += outlines.back().advance;
    }
    const double size = text.size * scale_, room = text.width() * scale_;
    const double weight = text.bold ? 0.045 * size : 0;
    const double narrow = std::min(1.0, ems > 0 ? (room - weight) / (ems * size) : 1.0);
    const double radians = text.angle * 3.14159265358979323846 / 180;
    const Point along{std::cos(radians), -std::sin(radians)};
    const Point right{along.x * size * narrow, along.y * size * narrow};
    const Point down{-along.y * size, along.x * size};
    Point at = scaled(text.at);
    const auto move = [&](double by) { at = {at.x + by * right.x, at.y + by * right.y}; };
    move(-text.anchor * ems);
    for (const Outline& outline : outlines) {
      canvas_.fill(outline, at, right, down, text.color);
      if (text.bold) {  // no second font file: a second letter beside the first
        canvas_.fill(outline, {at.x + weight * along.x, at.y + weight * along.y}, right, down,
                     text.color);
      }
      move(outline.advance);
    }
  }

  double scale_;
  Fonts fonts_;
  PngCanvas canvas_;
};

/// The bytes of a PNG file.
inline std::string png_of(const Picture& picture, const PngOptions& options) {
  if (!(options.scale >= 0.1 && options.scale <= 20)) {
    throw_invalid_argument("to_png: scale ", options.scale, "; expected 0.1 to 20");
  }
  const double width = static_cast<double>(picture.width) * options.scale;
  const double height = static_cast<double>(picture.height) * options.scale;
  if (std::max(width, height) > PngCanvas::longest_side ||
      width * height > PngCanvas::most_pixels) {
    throw_shape_error("to_png: a picture of ", picture.width, " x ", picture.height,
                      " pixels, scaled by ", options.scale);
  }
  const PngWriter writer(picture, options);
  const PngCanvas& canvas = writer.canvas();
  const auto bytes = canvas.encoded();
  if (bytes.empty()) raise(OutOfMemory(Extents<2>{canvas.height(), canvas.width()}, 3));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace detail

/// Heatmaps as the bytes of one PNG picture: to_svg's, of the same size where the scale is 1, with
/// smooth letters of a font. Throws as to_svg does, InvalidArgument for a scale that is not from
/// 0.1 to 20, and ShapeError for a side of more than 32768 pixels or 700 million pixels in all.
inline std::string to_png(std::span<const Heatmap> heatmaps, Index columns = 2,
                          const PngOptions& options = {}) {
  return detail::png_of(detail::page_of("to_png", heatmaps, columns), options);
}

/// One heatmap as a PNG picture.
inline std::string to_png(const Heatmap& heatmap, const PngOptions& options = {}) {
  return detail::png_of(detail::picture_of(heatmap), options);
}

/// Charts as the bytes of one PNG picture: to_svg's. Throws as to_svg does, and as to_png of
/// heatmaps does.
inline std::string to_png(std::span<const Chart> charts, Index columns = 2,
                          const PngOptions& options = {}) {
  return detail::png_of(detail::page_of("to_png", charts, columns), options);
}

/// One chart as a PNG picture.
inline std::string to_png(const Chart& chart, const PngOptions& options = {}) {
  return detail::png_of(detail::picture_of(chart), options);
}

/// Writes a PNG file of one picture: write_png(path, heatmap, {.scale = 2}).
template <class Picture>
requires requires(const Picture& picture) { to_png(picture, PngOptions{}); }
void write_png(const FilePath& path, const Picture& picture, const PngOptions& options) {
  detail::write_picture(path, to_png(picture, options));
}

}  // namespace heed
