// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// One line of a chart: points in the order they are joined. A point that is not finite is left
/// out and breaks the line.
struct Series {
  std::string name;  // in the legend; empty: not there
  std::vector<double> x;
  std::vector<double> y;
};

/// Lines to look at, with axes and a legend. How it is shown is the writers' affair: to_terminal,
/// to_svg, to_html, to_png; write_svg, write_html, write_png.
struct LineChart {
  std::vector<Series> series;
  std::string title = {};
  std::string x_title = {};
  std::string y_title = {};
  std::optional<double> low = {};   // ends of the y axis; none: what the values need
  std::optional<double> high = {};  // values beyond are cut off
};

/// A line through the values of any vector, at x = first, first + 1, …
template <Viewable Y>
Series series_of(const Y& values, std::string name = {}, double first = 0) {
  const auto view = view_of(values);
  static_assert(decltype(view)::rank() == 1, "a series shows a vector");
  Series series;
  series.name = std::move(name);
  for (Index i = 0; i < view.extent(0); ++i) {
    series.x.push_back(first + static_cast<double>(i));
    series.y.push_back(static_cast<double>(view(i)));
  }
  return series;
}

namespace detail {

inline bool finite(double value) { return value - value == 0; }

/// What the writers rely on. Throws InvalidArgument.
inline void check_line_chart(const LineChart& chart) {
  for (const Series& series : chart.series) {
    if (series.x.size() == series.y.size()) continue;
    throw_shape_error("line chart: series '", series.name, "' has ", series.x.size(), " x and ",
                      series.y.size(), " y");
  }
  const auto refused = [](double end) { return !(end >= -1e300 && end <= 1e300); };
  if ((chart.low && refused(*chart.low)) || (chart.high && refused(*chart.high)) ||
      (chart.low && chart.high && !(*chart.low < *chart.high))) {
    throw_invalid_argument("line chart: y from ", chart.low.value_or(0), " to ",
                           chart.high.value_or(0), "; expected a finite range, low first");
  }
}

/// Both axes of a chart.
struct ChartAxes {
  Axis x, y;
};

/// Axes that hold every finite point, with at most about so many ticks.
inline ChartAxes axes_of(const LineChart& chart, Index x_parts, Index y_parts) {
  check_line_chart(chart);
  bool first = true, whole = true;  // whole: every x is an integer, as steps and positions are
  double left = 0, right = 1, low = 0, high = 1;
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double x = series.x[i], y = series.y[i];
      if (!(x >= -1e300 && x <= 1e300 && y >= -1e300 && y <= 1e300)) continue;
      whole = whole && x == std::floor(x);
      left = first || x < left ? x : left;
      right = first || x > right ? x : right;
      low = first || y < low ? y : low;
      high = first || y > high ? y : high;
      first = false;
    }
  }
  if (whole && !first && right - left < static_cast<double>(x_parts)) {
    x_parts = std::max<Index>(1, static_cast<Index>(right - left));
  }
  const bool fixed_range = chart.low && chart.high;
  low = chart.low.value_or(chart.high && low >= *chart.high ? *chart.high - 1 : low);
  high = chart.high.value_or(high <= low && chart.low ? low + 1 : high);
  return {make_axis(left, right, x_parts, false), make_axis(low, high, y_parts, !fixed_range)};
}

/// A point as shares of the axes: (0, 0) is the low end of both.
struct ChartPoint {
  double x = 0, y = 0;
};

/// The points of a line in runs without a gap. Those past the ends of the y axis are among them.
inline std::vector<std::vector<ChartPoint>> runs_of(const Series& series, const ChartAxes& axes) {
  std::vector<std::vector<ChartPoint>> runs(1);
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const double x = axes.x.share(series.x[i]), y = axes.y.share(series.y[i]);
    if (finite(x) && finite(y)) {
      runs.back().push_back({x, y});
    } else if (!runs.back().empty()) {
      runs.emplace_back();
    }
  }
  if (runs.back().empty()) runs.pop_back();
  return runs;
}

inline bool inside(const ChartPoint& point) { return point.y >= 0 && point.y <= 1; }

/// Cuts the line from a to b down to the part with y in [0, 1]; false if there is none.
inline bool clip(ChartPoint& a, ChartPoint& b) {
  if ((a.y < 0 && b.y < 0) || (a.y > 1 && b.y > 1)) return false;
  const auto cut = [](ChartPoint& outside, const ChartPoint& other) {
    if (inside(outside)) return;
    const double edge = outside.y < 0 ? 0 : 1;
    const double along = (edge - outside.y) / (other.y - outside.y);
    outside = {outside.x + along * (other.x - outside.x), edge};
  };
  cut(a, b);
  cut(b, a);
  return true;
}

/// The color of the i-th line: Okabe and Ito's palette, which color-blind readers tell apart, its
/// lightest colors left out.
inline Color line_color(std::size_t i) {
  constexpr Color colors[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115}, {204, 121, 167},
                              {86, 180, 233}, {230, 159, 0}, {68, 68, 68}};
  return colors[i % (sizeof(colors) / sizeof(*colors))];
}

}  // namespace detail

}  // namespace heed
