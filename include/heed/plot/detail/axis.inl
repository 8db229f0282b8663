// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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
    axis.low = std::min(low, first * axis.step);  // which may be rounded beyond the value
    axis.high = std::max(high, last * axis.step);
  }
  return axis;
}

HEED_INLINE Axis make_log_axis(double low, double high, Index parts, bool widen) {
  if (!(high > low * (1 + 1e-12))) {
    low /= 2;
    high *= 2;
  }
  // Powers of ten at both ends, and every so many of them has a number.
  const double first = std::floor(std::log10(low) + 1e-9);
  const double last = std::max(first + 1, std::ceil(std::log10(high) - 1e-9));
  Axis axis{low, high, 1, {}, {}, true};
  if (widen) {
    axis.low = std::min(low, std::pow(10, first));
    axis.high = std::max(high, std::pow(10, last));
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

/// Throws InvalidArgument for ends of an axis that make no range.
HEED_INLINE void check_ends(const char* axis, const std::optional<double>& low,
                            const std::optional<double>& high, bool log) {
  const auto refused = [&](double end) {
    return !(end >= (log ? 1e-300 : -1e300) && end <= 1e300);
  };
  if ((low && refused(*low)) || (high && refused(*high)) || (low && high && !(*low < *high))) {
    const auto shown = [](const std::optional<double>& end) {
      return end ? message(*end) : std::string("none");
    };
    throw_invalid_argument("chart: ", axis, " from ", shown(low), " to ", shown(high),
                           "; expected a range within 1e300, low first", log ? ", above 0" : "");
  }
}

HEED_INLINE void check_chart(const Chart& chart) {
  for (const Series& series : chart.series) {
    if (!series.x.empty() && series.x.size() != series.y.size()) {
      throw_shape_error("chart: series '", series.name, "' has ", series.x.size(), " x and ",
                        series.y.size(), " y");
    }
    if (series.bars && chart.log_x) {
      throw_invalid_argument("chart: bars of '", series.name, "' over a logarithmic x axis");
    }
  }
  if (!chart.x_labels.empty() && chart.log_x) {
    throw_invalid_argument("chart: x_labels name x = 0, 1, …; a logarithmic axis has no 0");
  }
  check_ends("y", chart.low, chart.high, chart.log_y);
  check_ends("right axis", chart.right_low, chart.right_high, chart.log_right);
}

/// The ends of an axis around the values that it has a place for.
struct ChartRange {
  bool log = false;
  bool empty = true, whole = true;  // whole: all are integers, as steps and positions are
  double low = 0, high = 1;

  bool places(double value) const { return value <= 1e300 && value >= (log ? 1e-300 : -1e300); }
  void add(double value) {
    whole = whole && value == std::floor(value);
    low = empty || value < low ? value : low;
    high = empty || value > high ? value : high;
    empty = false;
  }
  /// An axis with these ends, where they are given.
  Axis axis(const std::optional<double>& given_low, const std::optional<double>& given_high,
            Index parts) const {
    const bool above = given_high && low >= *given_high;  // all values are above the high end
    double first = given_low.value_or(above ? *given_high - 1 : low);
    const double last = given_high.value_or(high <= first && given_low ? first + 1 : high);
    const bool widen = !(given_low && given_high);
    if (!log) return make_axis(first, last, parts, widen);
    if (!(first > 0)) first = last > 0.1 ? 0.1 : last / 10;
    return make_log_axis(first, last, parts, widen);
  }
};

/// The smallest step between the places of bars; 1 if all are at one, and 0 if there are none.
/// Places that differ by rounding alone, 0.3 and 0.1 + 0.2, are one.
HEED_INLINE double bar_step(const Chart& chart) {
  std::vector<double> places;
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; series.bars && i < series.y.size(); ++i) {
      if (finite(x_at(series, i))) places.push_back(x_at(series, i));
    }
  }
  if (places.empty()) return 0;
  std::sort(places.begin(), places.end());
  double step = 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const double next = places[i] - places[i - 1];
    const double rounding = 1e-12 * std::max(std::abs(places[i]), std::abs(places[i - 1]));
    if (next > rounding && (step == 0 || next < step)) step = next;
  }
  return step == 0 ? 1 : step;
}

/// The axis of x: around all points, bars and labels.
HEED_INLINE Axis x_axis_of(const Chart& chart, ChartRange range, Index parts) {
  const double half = bar_step(chart) / 2;
  if (half > 0 && !range.empty) {
    range.low -= half;
    range.high += half;
  }
  const auto named = static_cast<double>(chart.x_labels.size());
  if (named > 0) {
    range.low = std::min(range.empty ? -0.5 : range.low, -0.5);
    range.high = std::max(range.empty ? -0.5 : range.high, named - 0.5);
  }
  if (range.empty && chart.log_x) range.low = 0.1;
  if (chart.log_x) return make_log_axis(range.low, range.high, parts, false);
  if (range.whole && !range.empty && range.high - range.low < static_cast<double>(parts)) {
    parts = std::max<Index>(1, static_cast<Index>(range.high - range.low));
  }
  Axis axis = make_axis(range.low, range.high, parts, false);
  if (named == 0) return axis;
  axis.ticks.clear();
  axis.minor_ticks.clear();
  for (double at = 0; at < named; ++at) axis.ticks.push_back(at);
  return axis;
}

HEED_INLINE ChartAxes axes_of(const Chart& chart, Index x_parts, Index y_parts) {
  check_chart(chart);
  ChartRange across{.log = chart.log_x}, left{.log = chart.log_y}, right{.log = chart.log_right};
  for (const Series& series : chart.series) {
    ChartRange& up = series.right ? right : left;
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      if (!across.places(x_at(series, i)) || !up.places(series.y[i])) continue;
      across.add(x_at(series, i));
      up.add(series.y[i]);
      if (series.bars && !up.log) up.add(0);
    }
  }
  return {x_axis_of(chart, across, x_parts), left.axis(chart.low, chart.high, y_parts),
          right.axis(chart.right_low, chart.right_high, y_parts), !right.empty};
}

HEED_INLINE std::vector<std::vector<ChartPoint>> runs_of(const Series& series,
                                                         const ChartAxes& axes) {
  std::vector<std::vector<ChartPoint>> runs(1);
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const double x = axes.x.share(x_at(series, i)), y = axes.y_of(series).share(series.y[i]);
    if (placed(x) && finite(y)) {
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

HEED_INLINE Color bar_color(std::size_t i) {
  const auto pale = [&](std::uint8_t channel) {
    const std::size_t parts = 3, white = std::min<std::size_t>(i / 7, parts - 1);
    return static_cast<std::uint8_t>((channel * (parts - white) + 255 * white) / parts);
  };
  const Color color = line_color(i);
  return {pale(color.red), pale(color.green), pale(color.blue)};
}

HEED_INLINE std::vector<ChartBar> bars_of(const Chart& chart, const ChartAxes& axes) {
  double count = 0, before = 0;
  for (const Series& series : chart.series) count += series.bars ? 1 : 0;
  const double width = 0.8 * bar_step(chart) / std::max(count, 1.0);
  std::vector<ChartBar> bars;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    if (!series.bars) continue;
    const Axis& up = axes.y_of(series);
    const double base = up.log ? 0 : std::clamp(up.share(0), 0.0, 1.0);
    for (std::size_t at = 0; at < series.y.size(); ++at) {
      const double from = x_at(series, at) + (before - count / 2) * width;
      const double left = axes.x.share(from), right = axes.x.share(from + width);
      const double end = std::clamp(up.share(series.y[at]), 0.0, 1.0);
      if (!placed(left) || !placed(right) || !finite(series.y[at]) || !finite(end)) continue;
      bars.push_back({i, at, left, right, std::min(base, end), std::max(base, end)});
    }
    ++before;
  }
  return bars;
}

HEED_INLINE std::size_t lines_hidden_by(const Chart& chart, std::size_t series) {
  const Series& line = chart.series[series];
  std::size_t hidden = 0;
  for (std::size_t i = 0; i < series && !line.bars; ++i) {
    const Series& other = chart.series[i];
    if (other.bars || other.right != line.right) continue;
    std::size_t same = 0;
    for (std::size_t at = 0; at < line.y.size() && at < other.y.size(); ++at) {
      same += x_at(line, at) == x_at(other, at) && line.y[at] == other.y[at] ? 1 : 0;
    }
    if (same > 1 && 2 * same >= line.y.size()) ++hidden;
  }
  return hidden;
}

}  // namespace heed::detail
