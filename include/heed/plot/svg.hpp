// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/plot/color.hpp>
#include <heed/plot/detail/svg_elements.hpp>
#include <heed/plot/detail/text.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/write_picture.hpp>

namespace heed {

namespace detail {

/// Draws one heatmap as SVG elements.
class SvgHeatmap {
 public:
  explicit SvgHeatmap(const Heatmap& heatmap) : heatmap_(heatmap) {
    check_heatmap(heatmap);
    const Index longest = std::max<Index>(1, std::max(rows(), columns()));
    cell_ = heatmap.numbers ? 34 : std::clamp<Index>(510 / longest, 2, 34);
    left_ = 40 + letter_width * longest_label(heatmap.row_labels);
    // Labels of columns rise at 45 degrees: cos 45° of their length, up and to the right.
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
      const bool zero = value == 0;  // masked: stands back behind what was computed
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

/// Heatmaps as one SVG picture, `columns` of them in a row: labels, color bars, and the exact value
/// of a cell when the pointer rests on it. No scripts, no network. Throws ShapeError for labels
/// that do not fit their axis.
inline std::string to_svg(std::span<const Heatmap> heatmaps, Index columns = 2) {
  return detail::svg_page<detail::SvgHeatmap>(heatmaps, columns);
}

/// One heatmap as an SVG picture.
inline std::string to_svg(const Heatmap& heatmap) { return to_svg(std::span(&heatmap, 1), 1); }

}  // namespace heed
