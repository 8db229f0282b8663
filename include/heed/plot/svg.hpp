// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include <heed/core/index.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/detail/picture.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/write_picture.hpp>

namespace heed {

/// Heatmaps as one SVG picture, `columns` of them in a row, with labels, color bars, and the exact
/// value of the cell under the pointer. Labels that do not fit are made smaller, turned, thinned
/// out and cut with an ellipsis. More than 8,000 cells are an image inside the picture and do not
/// tell their values; more than 1,024 rows or columns are drawn as means of blocks of cells, and a
/// note says so. No scripts, no network. Throws ShapeError for labels that are not one per row or
/// column, and InvalidArgument for an invalid range.
inline std::string to_svg(std::span<const Heatmap> heatmaps, Index columns = 2) {
  return detail::svg_of(detail::page_of("to_svg", heatmaps, columns));
}

/// One heatmap as an SVG picture.
inline std::string to_svg(const Heatmap& heatmap) {
  return detail::svg_of(detail::picture_of(heatmap));
}

/// Charts as one SVG picture, `columns` of them in a row, with axes, ticks, a legend, and the
/// numbers of the point under the pointer. No scripts, no network. Throws ShapeError for a series
/// with unequal numbers of x and y, and InvalidArgument for an invalid range, bars or x_labels with
/// log_x, and fewer than one column.
inline std::string to_svg(std::span<const Chart> charts, Index columns = 2) {
  return detail::svg_of(detail::page_of("to_svg", charts, columns));
}

/// One chart as an SVG picture.
inline std::string to_svg(const Chart& chart) { return detail::svg_of(detail::picture_of(chart)); }

}  // namespace heed

#include <heed/plot/detail/definitions.hpp>
