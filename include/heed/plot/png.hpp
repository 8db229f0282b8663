// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/plot/color.hpp>
#include <heed/plot/detail/png_canvas.hpp>
#include <heed/plot/detail/png_pictures.hpp>
#include <heed/plot/detail/text.hpp>
#include <heed/plot/heatmap.hpp>

namespace heed {

namespace detail {

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
/// color bars; letters beyond ASCII show as "?" here, not in to_svg and to_terminal. Throws
/// ShapeError for labels that do not fit their axis and a side of more than 32768 pixels.
inline std::string to_png(std::span<const Heatmap> heatmaps, Index columns = 2) {
  return detail::png_of_pictures<detail::PngHeatmap>(heatmaps, columns);
}

/// One heatmap as a PNG picture.
inline std::string to_png(const Heatmap& heatmap) { return to_png(std::span(&heatmap, 1), 1); }

}  // namespace heed
