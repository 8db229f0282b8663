// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// An axis of a chart: its range and the round numbers along it.
struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;  // between ticks
  std::vector<double> ticks;

  /// The place of a value, 0 at the low end and 1 at the high end.
  double share(double value) const { return (value - low) / (high - low); }

  /// The text of a tick, with as many digits as the step needs.
  std::string label(double tick) const {
    if (std::fabs(tick) < step / 2) tick = 0;  // a rounding error, and never "-0"
    if (step >= 1e6 || step < 1e-4) return brief(tick);
    const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
    return fixed(tick, decimals);
  }
};

/// The smallest step of 1, 2 or 5 times a power of ten that cuts `range` into at most `parts`
/// parts.
inline double round_step(double range, Index parts) {
  const double least = range / static_cast<double>(parts);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// An axis for finite values from `low` to `high` with at most about `parts` + 1 ticks; with
/// `widen`, its ends move out to ticks. A range of one value is widened around it.
inline Axis make_axis(double low, double high, Index parts, bool widen) {
  const double size = std::fmax(std::fabs(low), std::fabs(high));
  if (!(high - low > 1e-12 * size) || high - low < 1e-300) {
    const double margin = size < 1e-290 ? 1 : size / 2;
    low -= margin;
    high += margin;
  }
  Axis axis{low, high, round_step(high - low, parts), {}};
  const double first =
      widen ? std::floor(low / axis.step + 1e-9) : std::ceil(low / axis.step - 1e-9);
  const double last =
      widen ? std::ceil(high / axis.step - 1e-9) : std::floor(high / axis.step + 1e-9);
  for (double at = first; at <= last; ++at) axis.ticks.push_back(at * axis.step);
  if (widen) {
    axis.low = first * axis.step;
    axis.high = last * axis.step;
  }
  return axis;
}

}  // namespace detail

/// A line of a chart: points in drawing order. A point that is not finite breaks the line.
struct Series {
  std::string name;  // in the legend; empty: no entry
  std::vector<double> x;
  std::vector<double> y;
};

/// Lines to draw, with axes and a legend. Functions that draw it: to_terminal, to_svg, to_html,
/// to_png; write_svg, write_html, write_png.
struct LineChart {
  std::vector<Series> series;
  std::string title = {};
  std::string x_title = {};
  std::string y_title = {};
  std::optional<double> low = {};   // ends of the y axis; none: from the values
  std::optional<double> high = {};  // lines outside are cut off
};

/// A line through the values of a vector, at x = first, first + 1, …
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

/// Checks series and range before drawing. Throws ShapeError and InvalidArgument.
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

/// Axes around all finite points, with at most about so many parts.
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

/// A point relative to the axes: (0, 0) is the low end of both.
struct ChartPoint {
  double x = 0, y = 0;
};

/// The points of a line, in runs between gaps, including points above and below the y axis.
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

/// Clips the line from a to b to y in [0, 1]; false if nothing is left.
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

/// The color of the i-th line: the palette of Okabe and Ito for color-blind readers, without its
/// lightest colors.
inline Color line_color(std::size_t i) {
  constexpr Color colors[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115}, {204, 121, 167},
                              {86, 180, 233}, {230, 159, 0}, {68, 68, 68}};
  return colors[i % (sizeof(colors) / sizeof(*colors))];
}

}  // namespace detail

}  // namespace heed
