// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <heed/plot/detail/svg_elements.hpp>
#include <heed/plot/detail/text.hpp>
#include <heed/plot/line_chart.hpp>
#include <heed/plot/write_picture.hpp>

namespace heed {

namespace detail {

/// Draws one chart as SVG elements.
class SvgLineChart {
 public:
  explicit SvgLineChart(const LineChart& chart) : chart_(chart), axes_(axes_of(chart, 10, 6)) {
    for (const double tick : axes_.y.ticks) {
      left_ = std::max(left_, 44 + letter_width * text_width(axes_.y.label(tick)));
    }
    top_ = chart.title.empty() ? 20 : 48;
    for (const Series& series : chart.series) {
      const Index name = series.name.empty() ? 0 : 56 + letter_width * text_width(series.name);
      legend_width_ = std::max(legend_width_, name);
    }
    const Index title = 9 * text_width(chart.title) + 24;
    width_ = left_ + std::max(plot_width + std::max<Index>(legend_width_, 24), title);
    height_ = top_ + plot_height + (chart.x_title.empty() ? 32 : 52);
  }

  Index width() const { return width_; }
  Index height() const { return height_; }

  std::string content() {
    text_.clear();
    if (!chart_.title.empty()) {
      text_ += svg_text(left_, 28, chart_.title, "font-size=\"16\" font-weight=\"600\"");
    }
    draw_axes();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) draw_series(i);
    draw_legend();
    return text_;
  }

 private:
  static constexpr Index letter_width = 8, plot_width = 560, plot_height = 300;
  static constexpr std::size_t most_marks = 60;

  double x_of(double share) const {
    return static_cast<double>(left_) + share * static_cast<double>(plot_width);
  }
  double y_of(double share) const {
    return static_cast<double>(top_) + (1 - share) * static_cast<double>(plot_height);
  }
  static std::string real(std::string_view name, double value) {
    return " " + std::string(name) + "=\"" + fixed(value, 1) + "\"";
  }
  void line(double x0, double y0, double x1, double y1, std::string_view color) {
    text_ += "<line" + real("x1", x0) + real("y1", y0) + real("x2", x1) + real("y2", y1) +
             " stroke=\"" + std::string(color) + "\"/>\n";
  }

  void draw_axes() {
    for (const double tick : axes_.y.ticks) {
      const double share = axes_.y.share(tick);
      if (share < -1e-9 || share > 1 + 1e-9) continue;
      const auto y = static_cast<Index>(y_of(share) + 0.5);
      line(x_of(0), y_of(share), x_of(1), y_of(share), "#ddd");
      text_ += svg_text(left_ - 8, y + 4, axes_.y.label(tick), "text-anchor=\"end\"");
    }
    line(x_of(0), y_of(0), x_of(1), y_of(0), "#666");
    for (const double tick : axes_.x.ticks) {
      const double x = x_of(axes_.x.share(tick));
      line(x, y_of(0), x, y_of(0) + 5, "#666");
      text_ += svg_text(static_cast<Index>(x + 0.5), top_ + plot_height + 19, axes_.x.label(tick),
                        "text-anchor=\"middle\"");
    }
    const std::string quiet = "fill=\"#666\" text-anchor=\"middle\"";
    if (!chart_.x_title.empty()) {
      text_ += svg_text(left_ + plot_width / 2, top_ + plot_height + 40, chart_.x_title, quiet);
    }
    const Index middle = top_ + plot_height / 2;
    if (!chart_.y_title.empty()) {
      text_ += svg_text(18, middle, chart_.y_title, quiet + " " + svg_turned(-90, 18, middle));
    }
  }

  void draw_series(std::size_t i) {
    const std::string stroke = " stroke=\"" + hex(line_color(i)) + "\"";
    text_ += "<g shape-rendering=\"geometricPrecision\" fill=\"none\" stroke-width=\"1.8\"" +
             stroke + ">\n";
    for (const auto& run : runs_of(chart_.series[i], axes_)) {
      std::string path;
      bool joined = false;
      for (std::size_t at = 1; at < run.size(); ++at) {
        ChartPoint a = run[at - 1], b = run[at];
        if (!clip(a, b)) {
          joined = false;
          continue;
        }
        if (!joined) path += "M" + coordinates(a);
        path += "L" + coordinates(b);
        joined = inside(run[at]);
      }
      if (!path.empty()) text_ += "<path stroke-linejoin=\"round\" d=\"" + path + "\"/>\n";
    }
    draw_marks(i);
    text_ += "</g>\n";
  }
  std::string coordinates(const ChartPoint& point) const {
    return fixed(x_of(point.x), 1) + " " + fixed(y_of(point.y), 1);
  }

  /// A mark at every point, with its numbers when the pointer rests on it; on long lines the marks
  /// are there for the pointer alone.
  void draw_marks(std::size_t i) {
    const Series& series = chart_.series[i];
    const bool quiet = series.x.size() > most_marks;
    if (series.x.size() > 20 * most_marks) return;
    for (std::size_t at = 0; at < series.x.size(); ++at) {
      const ChartPoint point{axes_.x.share(series.x[at]), axes_.y.share(series.y[at])};
      if (!finite(point.x) || !finite(point.y) || !inside(point)) continue;
      text_ += mark(
          quiet ? 0 : i, x_of(point.x), y_of(point.y),
          quiet ? "stroke=\"none\" fill-opacity=\"0\" pointer-events=\"all\"" : "fill=\"#fff\"");
      const std::string name = series.name.empty() ? "" : escaped(series.name) + ": ";
      text_ += "<title>" + name + brief(series.x[at]) + " → " + brief(series.y[at]) +
               "</title></path>\n";
    }
  }

  /// The beginning of a circle, cross, square or triangle, by line.
  static std::string mark(std::size_t i, double x, double y, const std::string& attributes) {
    constexpr std::string_view shapes[] = {"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
                                           "m-3.5 -3.5l7 7m0 -7l-7 7", "m-3 -3h6v6h-6z",
                                           "m0 -4l4 7h-8z"};
    return "<path " + attributes + " d=\"M" + fixed(x, 1) + " " + fixed(y, 1) +
           std::string(shapes[i % 4]) + "\">";
  }

  void draw_legend() {
    Index y = top_ + 8;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const Series& series = chart_.series[i];
      if (series.name.empty()) continue;
      const Index x = left_ + plot_width + 16;
      const auto left = static_cast<double>(x), middle = static_cast<double>(y);
      text_ += "<g shape-rendering=\"geometricPrecision\" stroke-width=\"1.8\" stroke=\"" +
               hex(line_color(i)) + "\"><path d=\"M" + fixed(left, 1) + " " + fixed(middle, 1) +
               "h24\"/>";
      if (series.x.size() <= most_marks) {
        text_ += mark(i, left + 12, middle, "fill=\"#fff\"") + "</path>";
      }
      text_ += "</g>" + svg_text(x + 30, y + 4, series.name, "");
      y += 20;
    }
  }

  const LineChart& chart_;
  ChartAxes axes_;
  Index left_ = 44, top_ = 0, legend_width_ = 0, width_ = 0, height_ = 0;
  std::string text_;
};

}  // namespace detail

/// Charts as one SVG picture, `columns` of them in a row: axes, ticks, a legend, and the numbers of
/// a point when the pointer rests on it. No scripts, no network. Throws ShapeError for a series
/// whose x and y differ in number, and for a range that is none.
inline std::string to_svg(std::span<const LineChart> charts, Index columns = 2) {
  return detail::svg_page<detail::SvgLineChart>(charts, columns);
}

/// One chart as an SVG picture.
inline std::string to_svg(const LineChart& chart) { return to_svg(std::span(&chart, 1), 1); }

}  // namespace heed
