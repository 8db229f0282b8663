// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/plot/detail/drawing.hpp>

namespace heed::detail {

HEED_INLINE double Axis::share(double value) const {
  if (!log) return (value - low) / (high - low);
  if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
  // Not of quotients, which may be infinite.
  const double begin = std::log10(low);
  return (std::log10(value) - begin) / (std::log10(high) - begin);
}

HEED_INLINE std::string Axis::label(double tick) const {
  if (log) return brief(tick);
  if (std::fabs(tick) < step / 2) tick = 0;  // a rounding error, and never "-0"
  if (step >= 1e6 || step < 1e-4) return brief(tick);
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return fixed(tick, decimals);
}

HEED_INLINE double round_step(double range, Index parts) {
  const double least = range / static_cast<double>(parts);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

HEED_INLINE Axis make_axis(double low, double high, Index parts, bool widen) {
  const double size = std::fmax(std::fabs(low), std::fabs(high));
  if (!(high - low > 1e-12 * size) || high - low < 1e-300) {
    const double margin = size < 1e-290 ? 1 : size / 2;
    low -= margin;
    high += margin;
  }
  Axis axis{low, high, round_step(high - low, parts), {}, {}, false};
  const double first =
      widen ? std::floor(low / axis.step + 1e-9) : std::ceil(low / axis.step - 1e-9);
  const double last =
      widen ? std::ceil(high / axis.step - 1e-9) : std::floor(high / axis.step + 1e-9);
  for (double at = first; at <= last; ++at) axis.ticks.push_back(at * axis.step);
  for (double at = first - 0.5; at <= last + 0.5; ++at) axis.minor_ticks.push_back(at * axis.step);
  if (widen) {
    axis.low = first * axis.step;
    axis.high = last * axis.step;
  }
  return axis;
}

HEED_INLINE Axis make_log_axis(double low, double high, Index parts, bool widen) {
  if (!(high > low * (1 + 1e-12))) {
    low /= 2;
    high *= 2;
  }
  // Powers of ten at both ends, and every so many of them has a number.
  const double first = std::floor(std::log10(low) + 1e-9),
               last = std::ceil(std::log10(high) - 1e-9);
  Axis axis{low, high, 1, {}, {}, true};
  if (widen) {
    axis.low = std::pow(10, first);
    axis.high = std::pow(10, last);
  }
  const double every = std::ceil((last - first) / static_cast<double>(parts));
  for (double power = first; power <= last; ++power) {
    const double value = std::pow(10, power);
    const bool numbered = std::fmod(power - first, every) == 0;
    if (value >= axis.low && value <= axis.high && numbered) axis.ticks.push_back(value);
    for (int digit = numbered ? 2 : 1; digit < 10 && (digit == 1 || every == 1); ++digit) {
      if (digit * value > axis.low && digit * value < axis.high) {
        axis.minor_ticks.push_back(digit * value);
      }
    }
  }
  if (axis.ticks.size() < 2) {  // less than a power of ten
    axis.ticks = {axis.low, axis.high};
  }
  return axis;
}

HEED_INLINE void check_line_chart(const LineChart& chart) {
  for (const Series& series : chart.series) {
    if (series.x.size() == series.y.size()) continue;
    throw_shape_error("line chart: series '", series.name, "' has ", series.x.size(), " x and ",
                      series.y.size(), " y");
  }
  const auto refused = [&](double end) {
    return !(end >= -1e300 && end <= 1e300) || (chart.log_y && !(end > 0));
  };
  if ((chart.low && refused(*chart.low)) || (chart.high && refused(*chart.high)) ||
      (chart.low && chart.high && !(*chart.low < *chart.high))) {
    throw_invalid_argument("line chart: y from ", chart.low.value_or(0), " to ",
                           chart.high.value_or(0), "; expected a finite range, low first",
                           chart.log_y ? ", above 0" : "");
  }
}

/// The ends of both axes around the points that they have a place for.
struct ChartRange {
  bool empty = true, whole = true;  // whole: every x is an integer, as steps and positions are
  double left = 0, right = 1, low = 0, high = 1;

  void add(double x, double y) {
    whole = whole && x == std::floor(x);
    left = empty || x < left ? x : left;
    right = empty || x > right ? x : right;
    low = empty || y < low ? y : low;
    high = empty || y > high ? y : high;
    empty = false;
  }
};

HEED_INLINE ChartAxes axes_of(const LineChart& chart, Index x_parts, Index y_parts) {
  check_line_chart(chart);
  ChartRange range;
  const auto placed = [](double value, bool log) {
    return value <= 1e300 && value >= -1e300 && (!log || value > 0);
  };
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!placed(series.x[i], chart.log_x) || !placed(series.y[i], chart.log_y)) continue;
      range.add(series.x[i], series.y[i]);
    }
  }
  if (range.whole && !range.empty && range.right - range.left < static_cast<double>(x_parts)) {
    x_parts = std::max<Index>(1, static_cast<Index>(range.right - range.left));
  }
  const bool widen = !(chart.low && chart.high);
  const bool above = chart.high && range.low >= *chart.high;  // all values are above the high end
  double low = chart.low.value_or(above ? *chart.high - 1 : range.low);
  const double high = chart.high.value_or(range.high <= low && chart.low ? low + 1 : range.high);
  if (range.empty && chart.log_x) range.left = 0.1;
  if (chart.log_y && !(low > 0)) low = high > 0.1 ? 0.1 : high / 10;
  return {chart.log_x ? make_log_axis(range.left, range.right, x_parts, false)
                      : make_axis(range.left, range.right, x_parts, false),
          chart.log_y ? make_log_axis(low, high, y_parts, widen)
                      : make_axis(low, high, y_parts, widen)};
}

HEED_INLINE std::vector<std::vector<ChartPoint>> runs_of(const Series& series,
                                                         const ChartAxes& axes) {
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

HEED_INLINE bool clip(ChartPoint& a, ChartPoint& b) {
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

HEED_INLINE Color line_color(std::size_t i) {
  constexpr Color colors[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115}, {204, 121, 167},
                              {86, 180, 233}, {230, 159, 0}, {68, 68, 68}};
  return colors[i % (sizeof(colors) / sizeof(*colors))];
}

HEED_INLINE LineStyle line_style(std::size_t i) { return {line_color(i), i % 5, i / 7 % 4}; }

HEED_INLINE bool hides_another(const LineChart& chart, std::size_t series) {
  const Series& line = chart.series[series];
  for (std::size_t i = 0; i < series; ++i) {
    const Series& other = chart.series[i];
    std::size_t same = 0;
    for (std::size_t at = 0; at < line.y.size() && at < other.y.size(); ++at) {
      same += line.x[at] == other.x[at] && line.y[at] == other.y[at] ? 1 : 0;
    }
    if (same > 1 && 2 * same >= line.y.size()) return true;
  }
  return false;
}

}  // namespace heed::detail
