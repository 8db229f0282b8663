// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
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

namespace heed {

namespace detail {

/// Text escaped for XML.
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

/// The attribute that rotates an element around (x, y).
inline std::string svg_turned(int angle, Index x, Index y) {
  return "transform=\"rotate(" + std::to_string(angle) + " " + std::to_string(x) + " " +
         std::to_string(y) + ")\"";
}

/// A group with its corner at (x, y).
inline std::string svg_group(Index x, Index y, const std::string& content) {
  return "<g transform=\"translate(" + std::to_string(x) + " " + std::to_string(y) + ")\">\n" +
         content + "</g>\n";
}

/// An SVG file of pictures, `columns` of them in a row. Picture is constructible from an Item and
/// has width(), height() and content().
template <class Picture, class Item>
std::string svg_page(std::span<const Item> items, Index columns) {
  std::vector<Picture> pictures;
  for (const Item& item : items) pictures.emplace_back(item);
  const auto [corners, width, height] =
      grid_of("to_svg", std::span<const Picture>(pictures), columns);
  std::string body;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    body += svg_group(corners[i].x, corners[i].y, pictures[i].content());
  }
  const std::string size = std::to_string(width) + " " + std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) +
         "\" height=\"" + std::to_string(height) + "\" viewBox=\"0 0 " + size +
         "\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\" "
         "shape-rendering=\"crispEdges\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#fff\"/>\n" +
         body + "</svg>\n";
}

/// Draws one heatmap as SVG elements.
class SvgHeatmap {
 public:
  explicit SvgHeatmap(const Heatmap& heatmap) : heatmap_(heatmap) {
    check_heatmap(heatmap);
    const Index longest = std::max<Index>(1, std::max(rows(), columns()));
    cell_ = heatmap.numbers ? 34 : std::clamp<Index>(510 / longest, 2, 34);
    left_ = 40 + letter_width * longest_label(heatmap.row_labels);
    // Column labels rise at 45 degrees: cos 45° of their length, up and to the right.
    const Index slanted = letter_width * longest_label(heatmap.column_labels) * 7 / 10;
    top_ = (heatmap.title.empty() ? 20 : 48) + slanted + 12;
    cells_width_ = cell_ * columns();
    cells_height_ = cell_ * rows();
    const Index bar = 84, title = 9 * text_width(heatmap.title) + 24;
    width_ = std::max(left_ + cells_width_ + std::max(bar, slanted + 16), left_ + title);
    height_ = top_ + cells_height_ + 36;
  }

  Index width() const { return width_; }
  Index height() const { return height_; }

  std::string content() {
    text_.clear();
    if (!heatmap_.title.empty()) {
      write(left_, 28, heatmap_.title, "font-size=\"16\" font-weight=\"600\"");
    }
    axes();
    for (Index row = 0; row < rows(); ++row) {
      for (Index column = 0; column < columns(); ++column) cell(row, column);
    }
    color_bar();
    return text_;
  }

 private:
  static constexpr Index letter_width = 8;

  Index rows() const { return heatmap_.values.extent(0); }
  Index columns() const { return heatmap_.values.extent(1); }
  static Index longest_label(const std::vector<std::string>& labels) {
    Index longest = 0;
    for (const auto& label : labels) longest = std::max(longest, text_width(label));
    return longest;
  }

  void rectangle(Index x, Index y, Index width, Index height, const Color& color) {
    text_ += svg_rectangle(x, y, width, height, color);
  }
  void write(Index x, Index y, std::string_view words, const std::string& attributes) {
    text_ += svg_text(x, y, words, attributes);
  }

  void axes() {
    for (std::size_t row = 0; row < heatmap_.row_labels.size(); ++row) {
      const Index y = top_ + cell_ * static_cast<Index>(row) + cell_ / 2 + 5;
      write(left_ - 8, y, heatmap_.row_labels[row], "text-anchor=\"end\"");
    }
    for (std::size_t column = 0; column < heatmap_.column_labels.size(); ++column) {
      const Index x = left_ + cell_ * static_cast<Index>(column) + cell_ / 2 + 2;
      write(x, top_ - 8, heatmap_.column_labels[column], svg_turned(-45, x, top_ - 8));
    }
    const std::string quiet = "fill=\"#666\" text-anchor=\"middle\"";
    const Index middle = top_ + cells_height_ / 2;
    write(18, middle, heatmap_.row_title, quiet + " " + svg_turned(-90, 18, middle));
    write(left_ + cells_width_ / 2, top_ + cells_height_ + 20, heatmap_.column_title, quiet);
  }

  void cell(Index row, Index column) {
    const double value = heatmap_.values(row, column);
    const Index x = left_ + cell_ * column, y = top_ + cell_ * row;
    const Color back = viridis(share_of(heatmap_, value));
    text_ += "<g>";
    rectangle(x, y, cell_, cell_, back);
    if (heatmap_.numbers) {
      const bool zero = value == 0;  // masked: paler than computed values
      text_ += "<text" + svg_attribute("x", x + cell_ / 2) + svg_attribute("y", y + cell_ / 2 + 4) +
               " text-anchor=\"middle\" font-size=\"12\" fill=\"" + hex(text_color_on(back)) +
               (zero ? "\" opacity=\"0.6\">" : "\">") + cell_text(value) + "</text>";
    }
    text_ += "<title>" + name(heatmap_.row_labels, row) + " → " +
             name(heatmap_.column_labels, column) + ": " + brief(value) + "</title></g>\n";
  }
  static std::string name(const std::vector<std::string>& labels, Index at) {
    const auto i = static_cast<std::size_t>(at);
    return i < labels.size() ? escaped(labels[i]) : std::to_string(at);
  }

  void color_bar() {
    const Index x = left_ + cells_width_ + 20;
    const Index length = std::clamp<Index>(cells_height_, 80, 240);
    constexpr Index steps = 60;
    for (Index step = 0; step < steps; ++step) {
      const Index y = top_ + length * step / steps;
      const Index end = top_ + length * (step + 1) / steps;
      rectangle(x, y, 12, end - y, viridis(1 - (static_cast<double>(step) + 0.5) / steps));
    }
    text_ += "\n";
    for (const Index tick : {0, 1, 2}) {
      const double share = 1 - static_cast<double>(tick) / 2;
      const double value = heatmap_.low + (heatmap_.high - heatmap_.low) * share;
      write(x + 18, top_ + 8 + (length - 8) * tick / 2, brief(value), "font-size=\"11\"");
    }
  }

  const Heatmap& heatmap_;
  Index cell_ = 0, left_ = 0, top_ = 0, cells_width_ = 0, cells_height_ = 0;
  Index width_ = 0, height_ = 0;
  std::string text_;
};

}  // namespace detail

/// Heatmaps as one SVG picture, `columns` of them in a row, with labels, color bars, and the exact
/// value of the cell under the pointer. No scripts, no network. Throws ShapeError for labels that
/// do not fit their axis.
inline std::string to_svg(std::span<const Heatmap> heatmaps, Index columns = 2) {
  return detail::svg_page<detail::SvgHeatmap>(heatmaps, columns);
}

/// One heatmap as an SVG picture.
inline std::string to_svg(const Heatmap& heatmap) { return to_svg(std::span(&heatmap, 1), 1); }

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

  /// Draws a mark at every point, which shows its numbers under the pointer; the marks of long
  /// lines are invisible.
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

  /// The beginning of a circle, cross, square or triangle, by the number of the line.
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

/// Charts as one SVG picture, `columns` of them in a row, with axes, ticks, a legend, and the
/// numbers of the point under the pointer. No scripts, no network. Throws ShapeError for a series
/// with unequal numbers of x and y, and InvalidArgument for an invalid range.
inline std::string to_svg(std::span<const LineChart> charts, Index columns = 2) {
  return detail::svg_page<detail::SvgLineChart>(charts, columns);
}

/// One chart as an SVG picture.
inline std::string to_svg(const LineChart& chart) { return to_svg(std::span(&chart, 1), 1); }

}  // namespace heed
