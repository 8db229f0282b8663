// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <heed/plot/color.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/text.hpp>

namespace heed {

namespace detail {

/// Text as it may stand in XML.
inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
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
      case '\'':
        result += "&#39;";
        break;
      default:
        result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
    }
  }
  return result;
}

/// Draws one heatmap as SVG. Lengths are in pixels.
class SvgHeatmap {
 public:
  explicit SvgHeatmap(const Heatmap& heatmap) : heatmap_(heatmap) {
    const Index longest = std::max(heatmap.values.extent(0), heatmap.values.extent(1));
    cell_ = heatmap.numbers ? 34 : std::clamp<Index>(480 / std::max<Index>(longest, 1), 4, 34);
    left_ = 44 + label_length(heatmap.row_labels);
    top_ = (heatmap.title.empty() ? 24 : 52) + label_length(heatmap.column_labels) * 7 / 10;
    width_ = cell_ * heatmap.values.extent(1);
    height_ = cell_ * heatmap.values.extent(0);
  }

  std::string draw() {
    const Index total_width = left_ + width_ + 90;
    const Index total_height = top_ + height_ + 20;
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(total_width) +
            "\" height=\"" + std::to_string(total_height) + "\" viewBox=\"0 0 " +
            std::to_string(total_width) + " " + std::to_string(total_height) +
            "\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\">\n" +
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    if (!heatmap_.title.empty()) {
      write(left_, 28, heatmap_.title, "font-size=\"16\" font-weight=\"600\"");
    }
    axes();
    for (Index row = 0; row < heatmap_.values.extent(0); ++row) {
      for (Index column = 0; column < heatmap_.values.extent(1); ++column) cell(row, column);
    }
    color_bar();
    return text_ + "</svg>\n";
  }

 private:
  static Index label_length(const std::vector<std::string>& labels) {
    Index longest = 0;
    for (const auto& label : labels) longest = std::max(longest, text_width(label));
    return longest * 8;
  }
  double share(double value) const {
    const double range = heatmap_.high - heatmap_.low;
    return range == 0 ? 0.0 : (value - heatmap_.low) / range;
  }
  void write(Index x, Index y, std::string_view words, std::string_view attributes = "") {
    text_ += "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" " +
             std::string(attributes) + ">" + escaped(words) + "</text>\n";
  }
  std::string turned(Index angle, Index x, Index y) const {
    return "transform=\"rotate(" + std::to_string(angle) + " " + std::to_string(x) + " " +
           std::to_string(y) + ")\"";
  }

  void axes() {
    for (std::size_t row = 0; row < heatmap_.row_labels.size(); ++row) {
      const Index y = top_ + cell_ * static_cast<Index>(row) + cell_ / 2 + 5;
      write(left_ - 8, y, heatmap_.row_labels[row], "text-anchor=\"end\"");
    }
    for (std::size_t column = 0; column < heatmap_.column_labels.size(); ++column) {
      const Index x = left_ + cell_ * static_cast<Index>(column) + cell_ / 2 + 4;
      write(x, top_ - 8, heatmap_.column_labels[column], turned(-50, x, top_ - 8));
    }
    const Index middle = top_ + height_ / 2;
    write(18, middle, heatmap_.row_title,
          "fill=\"#777\" text-anchor=\"middle\" " + turned(-90, 18, middle));
    write(left_ + width_, top_ + height_ + 15, heatmap_.column_title,
          "fill=\"#777\" text-anchor=\"end\"");
  }

  void cell(Index row, Index column) {
    const double value = heatmap_.values(row, column);
    const Index x = left_ + cell_ * column, y = top_ + cell_ * row;
    const Color back = viridis(share(value));
    text_ += "<g><rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
             std::to_string(cell_) + "\" height=\"" + std::to_string(cell_) + "\" fill=\"" +
             hex(back) + "\"/>";
    if (heatmap_.numbers) {
      text_ += "<text x=\"" + std::to_string(x + cell_ / 2) + "\" y=\"" +
               std::to_string(y + cell_ / 2 + 4) +
               "\" text-anchor=\"middle\" font-size=\"12\" fill=\"" + hex(text_color_on(back)) +
               "\">" + cell_text(value) + "</text>";
    }
    text_ += "<title>" + name(heatmap_.row_labels, row) + " → " +
             name(heatmap_.column_labels, column) + ": " + brief(value) + "</title></g>\n";
  }
  static std::string name(const std::vector<std::string>& labels, Index at) {
    const auto i = static_cast<std::size_t>(at);
    return i < labels.size() ? escaped(labels[i]) : std::to_string(at);
  }

  void color_bar() {
    const Index x = left_ + width_ + 24;
    const Index length = std::max<Index>(height_, 80);
    constexpr Index steps = 64;
    for (Index step = 0; step < steps; ++step) {
      const Index y = top_ + length * step / steps;
      text_ += "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) +
               "\" width=\"12\" height=\"" + std::to_string(length / steps + 2) + "\" fill=\"" +
               hex(viridis(1 - static_cast<double>(step) / (steps - 1))) + "\"/>\n";
    }
    for (const Index tick : {0, 1, 2}) {
      const double value =
          heatmap_.high + (heatmap_.low - heatmap_.high) * static_cast<double>(tick) / 2;
      write(x + 18, top_ + 9 + (length - 8) * tick / 2, brief(value), "font-size=\"11\"");
    }
  }

  const Heatmap& heatmap_;
  Index cell_ = 0, left_ = 0, top_ = 0, width_ = 0, height_ = 0;
  std::string text_;
};

}  // namespace detail

/// A heatmap as an SVG picture: labels, color bar, the exact value of a cell when the pointer rests
/// on it. No scripts, no network.
inline std::string to_svg(const Heatmap& heatmap) { return detail::SvgHeatmap(heatmap).draw(); }

}  // namespace heed
