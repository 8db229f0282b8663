// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <span>
#include <string>

#include <heed/plot/detail/png_canvas.hpp>
#include <heed/plot/detail/png_pictures.hpp>
#include <heed/plot/line_chart.hpp>

namespace heed {

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

  /// A dot, cross, square or triangle, by line.
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

/// Charts as the bytes of one PNG picture, `columns` of them in a row; letters beyond ASCII show as
/// "?" here, not in to_svg and to_terminal. Throws ShapeError as to_svg does, and for a side of
/// more than 32768 pixels.
inline std::string to_png(std::span<const LineChart> charts, Index columns = 2) {
  return detail::png_of_pictures<detail::PngLineChart>(charts, columns);
}

/// One chart as a PNG picture.
inline std::string to_png(const LineChart& chart) { return to_png(std::span(&chart, 1), 1); }

}  // namespace heed
