// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include <heed/core/index.hpp>
#include <heed/io/file.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/heatmap.hpp>

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

// Pictures as files: heatmaps, charts, and several of either in rows of so many columns. The bytes
// are those of the to_… function of the same name, and a file is written completely or not at all.
// All throw FileError, and the errors of to_….

namespace detail {

inline void write_picture(const std::string& path, const std::string& bytes) {
  write_file(path, std::as_bytes(std::span(bytes)));
}

}  // namespace detail

/// Writes an SVG file: write_svg(path, heatmap), write_svg(path, chart), write_svg(path, charts,
/// 3).
template <class... Pictures>
void write_svg(const FilePath& path, const Pictures&... pictures) {
  constexpr bool drawn = requires { to_svg(pictures...); };
  static_assert(drawn, "a picture is a Heatmap or a Chart: heatmap_of(matrix) makes one");
  if constexpr (drawn) detail::write_picture(path, to_svg(pictures...));
}
template <detail::NoPath Picture>
void write_svg(const Picture&, const std::string&) {
  detail::expect_path_first<Picture>();
}

/// Writes a PNG file.
template <class... Pictures>
void write_png(const FilePath& path, const Pictures&... pictures) {
  constexpr bool drawn = requires { to_png(pictures...); };
  constexpr bool drawn_as_svg = requires { to_svg(pictures...); };
  static_assert(drawn || drawn_as_svg,
                "a picture is a Heatmap or a Chart: heatmap_of(matrix) makes one");
  static_assert(drawn || !drawn_as_svg,
                "write_png needs <heed/plot/png.hpp>, and that header needs stb");
  if constexpr (drawn) detail::write_picture(path, to_png(pictures...));
}

}  // namespace heed

#include <heed/definitions/plot.hpp>
