// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A matrix to draw, with labels and titles. Functions that draw it: to_terminal, to_svg, to_html,
/// to_png; write_svg, write_html, write_png.
struct Heatmap {
  Tensor<double, 2> values;                     // (rows, columns)
  std::vector<std::string> row_labels = {};     // none, or one per row; UTF-8
  std::vector<std::string> column_labels = {};  // none, or one per column
  std::string title = {};
  std::string row_title = "query";
  std::string column_title = "key";
  double low = 0;        // the value of the darkest color
  double high = 1;       // the value of the brightest one
  bool numbers = false;  // write each value into its cell
};

/// A heatmap of any matrix. The labels name its rows, and its columns too if there are as many: the
/// tokens of self-attention. Throws ShapeError for labels that are not one per row.
template <class X>
requires Viewable<detail::Evaluated<X>> Heatmap heatmap_of(const X& matrix,
                                                           std::vector<std::string> labels = {},
                                                           std::string title = {}) {
  const auto& values = detail::evaluated(matrix);
  const auto view = view_of(values);
  static_assert(decltype(view)::rank() == 2, "a heatmap shows a matrix");
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({view.extent(0), view.extent(1)});
  for (Index row = 0; row < view.extent(0); ++row) {
    for (Index column = 0; column < view.extent(1); ++column) {
      heatmap.values(row, column) = static_cast<double>(view(row, column));
    }
  }
  const auto count = static_cast<Index>(labels.size());
  if (count != 0 && count != view.extent(0)) {
    throw_shape_error("heatmap_of: ", count, " labels for a matrix of ", view.extents());
  }
  heatmap.row_labels = labels;
  if (count == view.extent(1)) heatmap.column_labels = std::move(labels);
  heatmap.title = std::move(title);
  return heatmap;
}

/// Sets the range of the colors to the smallest and the largest finite value.
inline void fit_range(Heatmap& heatmap) {
  bool first = true;
  for (const double value : heatmap.values) {
    if (value - value != 0) continue;  // NaN, infinities
    if (first || value < heatmap.low) heatmap.low = value;
    if (first || value > heatmap.high) heatmap.high = value;
    first = false;
  }
}

namespace detail {

/// Checks labels and range before drawing. Throws ShapeError and InvalidArgument.
inline void check_heatmap(const Heatmap& heatmap) {
  const auto check = [](const char* what, std::size_t labels, Index extent) {
    if (labels != 0 && static_cast<Index>(labels) != extent) {
      throw_shape_error("heatmap: ", labels, " ", what, " labels for ", extent, " ", what, "s");
    }
  };
  check("row", heatmap.row_labels.size(), heatmap.values.extent(0));
  check("column", heatmap.column_labels.size(), heatmap.values.extent(1));
  if (!(heatmap.low <= heatmap.high) || heatmap.high - heatmap.low > 1.7e308) {
    throw_invalid_argument("heatmap: colors from ", heatmap.low, " to ", heatmap.high,
                           "; expected a finite range, low first");
  }
}

/// The place of a value between low and high, 0 to 1 inside; 0 if the two are equal.
inline double share_of(const Heatmap& heatmap, double value) {
  const double range = heatmap.high - heatmap.low;
  if (value != value) return value;
  return range == 0 ? 0.0 : (value - heatmap.low) / range;
}

/// The heatmap without labels, with each block of factor × factor values replaced by its mean
/// (without NaN).
inline Heatmap shrunk(const Heatmap& heatmap, Index factor) {
  const Index rows = heatmap.values.extent(0), columns = heatmap.values.extent(1);
  Heatmap small;
  small.title = heatmap.title;
  small.row_title = heatmap.row_title;
  small.column_title = heatmap.column_title;
  small.low = heatmap.low;
  small.high = heatmap.high;
  small.values = Tensor<double, 2>({(rows + factor - 1) / factor, (columns + factor - 1) / factor});
  Tensor<double, 2> counts(small.values.extents());
  for (Index row = 0; row < rows; ++row) {
    for (Index column = 0; column < columns; ++column) {
      const double value = heatmap.values(row, column);
      if (value != value) continue;
      small.values(row / factor, column / factor) += value;
      counts(row / factor, column / factor) += 1;
    }
  }
  for (Index i = 0; i < small.values.size(); ++i) small.values.data()[i] /= counts.data()[i];
  return small;
}

}  // namespace detail

}  // namespace heed
