// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/line_chart.hpp>
#include <heed/plot/write_picture.hpp>

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

namespace heed {

namespace detail {

/// A white canvas of pixels with rectangles, lines and text. Parts outside it are not drawn.
class PngCanvas {
 public:
  /// Pixels of the canvas per pixel of the font.
  static constexpr Index font_scale = 2;
  static constexpr Index letter_height = 7 * font_scale;
  /// The most pixels along one side of a file.
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

  /// Draws a line with round ends and smooth edges.
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
  /// Draws text with its top left corner at (x, y).
  void text(Index x, Index y, std::string_view words, const Color& color) {
    for_each_box(words, [&](Index left, Index top, Index width, Index height) {
      rectangle(x + left, y + top, width, height, color);
    });
  }
  /// Draws text upwards, with its bottom left corner at (x, y).
  void text_upwards(Index x, Index y, std::string_view words, const Color& color) {
    for_each_box(words, [&](Index left, Index top, Index width, Index height) {
      rectangle(x + top, y - left - width, height, width, color);
    });
  }

  /// The bytes of a PNG file; empty if the picture is too large for one.
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
#if HEED_EXCEPTIONS
      try {
        to.bytes.insert(to.bytes.end(), begin, begin + size);
      } catch (...) {
        to.error = std::current_exception();
      }
#else
      to.bytes.insert(to.bytes.end(), begin, begin + size);
#endif
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

  /// The text in ASCII, as the font needs it: "?" for other characters, a point for the middle dot.
  static std::string plain(std::string_view text) {
    std::string result;
    for (const Glyph& glyph : glyphs(text)) {
      const bool known = glyph.bytes.size() == 1;
      result += known ? glyph.bytes[0] : glyph.bytes == "·" ? '.' : '?';
    }
    return result;
  }

  /// Calls draw(left, top, width, height) for the rectangles of the letters.
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

/// The bytes of one PNG file of pictures, `columns` of them in a row. Picture is constructible from
/// an Item and has width(), height() and draw(canvas, x, y).
template <class Picture, class Item>
std::string png_of_pictures(std::span<const Item> items, Index columns) {
  std::vector<Picture> pictures;
  for (const Item& item : items) pictures.emplace_back(item);
  const PictureGrid grid = grid_of("to_png", std::span<const Picture>(pictures), columns);
  const Index width = std::max<Index>(1, grid.width), height = std::max<Index>(1, grid.height);
  if (width > PngCanvas::longest_side || height > PngCanvas::longest_side) {
    throw_shape_error("to_png: a picture of ", width, " x ", height, " pixels");
  }
  PngCanvas canvas(width, height);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    pictures[i].draw(canvas, grid.corners[i].x, grid.corners[i].y);
  }
  const auto bytes = canvas.encoded();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Lays one heatmap out in pixels and draws it.
class PngHeatmap {
 public:
  explicit PngHeatmap(const Heatmap& heatmap) : heatmap_(heatmap) {
    check_heatmap(heatmap);
    const Index longest = std::max<Index>(1, std::max(rows(), columns()));
    cell_ = heatmap.numbers ? 52 : std::clamp<Index>(720 / longest, 1, 52);
    left_ = 44 + longest_label(heatmap.row_labels);
    top_ = (heatmap.title.empty() ? 16 : 48) + longest_label(heatmap.column_labels) + 12;
    const Index bar = 120, title = PngCanvas::text_length(heatmap.title) + 24;
    width_ = left_ + std::max(cell_ * columns() + bar, title);
    height_ = top_ + std::max<Index>(cell_ * rows(), bar_length) + 44;
  }

  Index width() const { return width_; }
  Index height() const { return height_; }

  void draw(PngCanvas& canvas, Index x, Index y) const {
    const Index left = x + left_, top = y + top_;
    constexpr Color ink{34, 34, 34}, quiet{102, 102, 102};
    canvas.text(left, y + 16, heatmap_.title, ink);
    for (std::size_t row = 0; row < heatmap_.row_labels.size(); ++row) {
      const std::string& label = heatmap_.row_labels[row];
      canvas.text(left - 10 - PngCanvas::text_length(label), middle(top, row), label, ink);
    }
    for (std::size_t column = 0; column < heatmap_.column_labels.size(); ++column) {
      canvas.text_upwards(middle(left, column), top - 8, heatmap_.column_labels[column], ink);
    }
    const Index down = (cell_ * rows() + PngCanvas::text_length(heatmap_.row_title)) / 2;
    canvas.text_upwards(x + 10, top + down, heatmap_.row_title, quiet);
    const Index across = (cell_ * columns() - PngCanvas::text_length(heatmap_.column_title)) / 2;
    canvas.text(left + across, top + cell_ * rows() + 14, heatmap_.column_title, quiet);
    for (Index row = 0; row < rows(); ++row) {
      for (Index column = 0; column < columns(); ++column) {
        draw_cell(canvas, left + cell_ * column, top + cell_ * row, heatmap_.values(row, column));
      }
    }
    draw_bar(canvas, left + cell_ * columns() + 24, top);
  }

 private:
  static constexpr Index bar_length = 240;

  Index rows() const { return heatmap_.values.extent(0); }
  Index columns() const { return heatmap_.values.extent(1); }
  static Index longest_label(const std::vector<std::string>& labels) {
    Index longest = 0;
    for (const auto& label : labels) longest = std::max(longest, PngCanvas::text_length(label));
    return longest;
  }
  Index middle(Index begin, std::size_t at) const {
    return begin + cell_ * static_cast<Index>(at) + (cell_ - PngCanvas::letter_height) / 2;
  }

  void draw_cell(PngCanvas& canvas, Index x, Index y, double value) const {
    const Color back = viridis(share_of(heatmap_, value));
    canvas.rectangle(x, y, cell_, cell_, back);
    if (!heatmap_.numbers) return;
    const std::string number = cell_text(value);
    canvas.text(x + (cell_ - PngCanvas::text_length(number)) / 2,
                y + (cell_ - PngCanvas::letter_height) / 2, number, text_color_on(back));
  }

  void draw_bar(PngCanvas& canvas, Index x, Index y) const {
    for (Index at = 0; at < bar_length; ++at) {
      canvas.rectangle(x, y + at, 16, 1, viridis(1 - (static_cast<double>(at) + 0.5) / bar_length));
    }
    for (const Index tick : {0, 1, 2}) {
      const double share = 1 - static_cast<double>(tick) / 2;
      const double value = heatmap_.low + (heatmap_.high - heatmap_.low) * share;
      canvas.text(x + 26, y + (bar_length - PngCanvas::letter_height) * tick / 2, brief(value),
                  {34, 34, 34});
    }
  }

  const Heatmap& heatmap_;
  Index cell_ = 0, left_ = 0, top_ = 0, width_ = 0, height_ = 0;
};

}  // namespace detail

/// Heatmaps as the bytes of one PNG picture, `columns` of them in a row, with labels, numbers and
/// color bars. Letters beyond ASCII become "?"; to_svg and to_terminal show them. Throws ShapeError
/// for labels that do not fit their axis and for a side of more than 32768 pixels.
inline std::string to_png(std::span<const Heatmap> heatmaps, Index columns = 2) {
  return detail::png_of_pictures<detail::PngHeatmap>(heatmaps, columns);
}

/// One heatmap as a PNG picture.
inline std::string to_png(const Heatmap& heatmap) { return to_png(std::span(&heatmap, 1), 1); }

namespace detail {

/// Lays one chart out in pixels and draws it.
class PngLineChart {
 public:
  explicit PngLineChart(const LineChart& chart) : chart_(chart), axes_(axes_of(chart, 10, 6)) {
    for (const double tick : axes_.y.ticks) {
      left_ = std::max(left_, 52 + PngCanvas::text_length(axes_.y.label(tick)));
    }
    top_ = chart.title.empty() ? 24 : 56;
    Index legend = 32;
    for (const Series& series : chart.series) {
      if (!series.name.empty()) {
        legend = std::max(legend, 80 + PngCanvas::text_length(series.name));
      }
    }
    width_ = left_ + std::max(plot_width + legend, PngCanvas::text_length(chart.title) + 24);
    height_ = top_ + plot_height + (chart.x_title.empty() ? 44 : 72);
  }

  Index width() const { return width_; }
  Index height() const { return height_; }

  void draw(PngCanvas& canvas, Index x, Index y) const {
    const Index left = x + left_, top = y + top_;
    canvas.text(left, y + 20, chart_.title, ink);
    draw_axes(canvas, left, top);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) draw_series(canvas, left, top, i);
    const Index across = (plot_width - PngCanvas::text_length(chart_.x_title)) / 2;
    canvas.text(left + across, top + plot_height + 44, chart_.x_title, quiet);
    const Index down = (plot_height + PngCanvas::text_length(chart_.y_title)) / 2;
    canvas.text_upwards(x + 10, top + down, chart_.y_title, quiet);
    draw_legend(canvas, left + plot_width + 20, top);
  }

 private:
  static constexpr Index plot_width = 840, plot_height = 450;
  static constexpr Color ink{34, 34, 34}, quiet{102, 102, 102}, grid{221, 221, 221};
  static constexpr std::size_t most_marks = 60;
  static constexpr double thickness = 2.6;

  static double across(Index left, double share) {
    return static_cast<double>(left) + share * static_cast<double>(plot_width);
  }
  static double down(Index top, double share) {
    return static_cast<double>(top) + (1 - share) * static_cast<double>(plot_height);
  }

  void draw_axes(PngCanvas& canvas, Index left, Index top) const {
    for (const double tick : axes_.y.ticks) {
      const double share = axes_.y.share(tick);
      if (share < -1e-9 || share > 1 + 1e-9) continue;
      const auto y = static_cast<Index>(down(top, share));
      const std::string label = axes_.y.label(tick);
      canvas.rectangle(left, y, plot_width, 1, grid);
      canvas.text(left - 12 - PngCanvas::text_length(label), y - PngCanvas::letter_height / 2,
                  label, ink);
    }
    canvas.rectangle(left, top + plot_height, plot_width, 1, quiet);
    for (const double tick : axes_.x.ticks) {
      const auto x = static_cast<Index>(across(left, axes_.x.share(tick)));
      const std::string label = axes_.x.label(tick);
      canvas.rectangle(x, top + plot_height, 1, 7, quiet);
      canvas.text(x - PngCanvas::text_length(label) / 2, top + plot_height + 14, label, ink);
    }
  }

  void draw_series(PngCanvas& canvas, Index left, Index top, std::size_t i) const {
    for (const auto& run : runs_of(chart_.series[i], axes_)) {
      for (std::size_t at = 0; at < run.size(); ++at) {
        ChartPoint a = run[at == 0 ? 0 : at - 1], b = run[at];
        if (at > 0 && clip(a, b)) {
          canvas.line(across(left, a.x), down(top, a.y), across(left, b.x), down(top, b.y),
                      thickness, line_color(i));
        }
        if (chart_.series[i].x.size() <= most_marks && inside(run[at])) {
          mark(canvas, i, across(left, run[at].x), down(top, run[at].y));
        }
      }
    }
  }

  /// Draws a dot, cross, square or triangle, by the number of the line.
  static void mark(PngCanvas& canvas, std::size_t i, double x, double y) {
    const Color color = line_color(i);
    const auto stroke = [&](double x0, double y0, double x1, double y1) {
      canvas.line(x + x0, y + y0, x + x1, y + y1, thickness, color);
    };
    constexpr double r = 5;
    if (i % 4 == 0) {
      canvas.line(x, y, x, y, 2 * r, color);
    } else if (i % 4 == 1) {
      stroke(-r, -r, r, r);
      stroke(-r, r, r, -r);
    } else {
      const double peak = i % 4 == 2 ? r : 0;  // half the upper edge
      stroke(-r, r, r, r);
      stroke(r, r, peak, -r);
      stroke(peak, -r, -peak, -r);
      stroke(-peak, -r, -r, r);
    }
  }

  void draw_legend(PngCanvas& canvas, Index x, Index y) const {
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const Series& series = chart_.series[i];
      if (series.name.empty()) continue;
      const auto left = static_cast<double>(x), middle = static_cast<double>(y + 8);
      canvas.line(left, middle, left + 36, middle, thickness, line_color(i));
      if (series.x.size() <= most_marks) mark(canvas, i, left + 18, middle);
      canvas.text(x + 46, y + 8 - PngCanvas::letter_height / 2, series.name, ink);
      y += 28;
    }
  }

  const LineChart& chart_;
  ChartAxes axes_;
  Index left_ = 52, top_ = 0, width_ = 0, height_ = 0;
};

}  // namespace detail

/// Charts as the bytes of one PNG picture, `columns` of them in a row. Letters beyond ASCII become
/// "?"; to_svg and to_terminal show them. Throws as to_svg does, and ShapeError for a side of more
/// than 32768 pixels.
inline std::string to_png(std::span<const LineChart> charts, Index columns = 2) {
  return detail::png_of_pictures<detail::PngLineChart>(charts, columns);
}

/// One chart as a PNG picture.
inline std::string to_png(const LineChart& chart) { return to_png(std::span(&chart, 1), 1); }

}  // namespace heed
