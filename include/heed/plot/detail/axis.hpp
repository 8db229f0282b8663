// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/color.hpp>

// Axes of charts and what lies between them. Definitions: axis.inl.

namespace heed::detail {

/// An axis of a chart: its range and the round numbers along it.
struct Axis {
  double low = 0;  // of a logarithmic axis too: a value, and not its logarithm
  double high = 1;
  double step = 1;  // between ticks
  std::vector<double> ticks;
  std::vector<double> minor_ticks = {};  // between them, without a number
  bool log = false;

  /// The place of a value, 0 at the low end and 1 at the high end; NaN where a logarithmic axis has
  /// none.
  double share(double value) const;

  /// The text of a tick, with as many digits as the step needs.
  std::string label(double tick) const;
};

/// The smallest step of 1, 2 or 5 times a power of ten that cuts `range` into at most `parts`
/// parts.
double round_step(double range, Index parts);

/// An axis for finite values from `low` to `high` with at most about `parts` + 1 ticks; with
/// `widen`, its ends move out to ticks. A range of one value is widened around it.
Axis make_axis(double low, double high, Index parts, bool widen);

/// The same with powers of ten an equal step apart; `low` is above 0.
Axis make_log_axis(double low, double high, Index parts, bool widen);

/// The axes of a chart.
struct ChartAxes {
  Axis x, y, right;
  bool both = false;  // the right one too is used

  const Axis& y_of(const Series& series) const { return series.right ? right : y; }
};

/// Checks series and range before drawing. Throws ShapeError and InvalidArgument.
void check_chart(const Chart& chart);

/// Axes around all finite points, with at most about so many parts.
ChartAxes axes_of(const Chart& chart, Index x_parts, Index y_parts);

/// The x of a point: its number where the series has no x of its own.
inline double x_at(const Series& series, std::size_t point) {
  return series.x.empty() ? static_cast<double>(point) : series.x[point];
}

/// A point relative to the axes: (0, 0) is the low end of both.
struct ChartPoint {
  double x = 0, y = 0;
};

/// The points of a line, in runs between gaps, including points above and below the y axis.
std::vector<std::vector<ChartPoint>> runs_of(const Series& series, const ChartAxes& axes);

/// A bar of a point of a series, relative to the axes and cut off at their ends.
struct ChartBar {
  std::size_t series = 0, point = 0;
  double left = 0, right = 0, low = 0, high = 0;
};

/// The bars of a chart: those at the same x side by side, with a gap to those at the next.
std::vector<ChartBar> bars_of(const Chart& chart, const ChartAxes& axes);

/// Whether a chart draws at a share of its x axis: not NaN, and not of a point that the axis left
/// out.
inline bool placed(double x) { return x > -1 && x < 2; }

inline bool inside(const ChartPoint& point) { return point.y >= 0 && point.y <= 1; }

/// Clips the line from a to b to y in [0, 1]; false if nothing is left.
bool clip(ChartPoint& a, ChartPoint& b);

/// How the i-th line is drawn: with the next of seven colors, of five marks, and dashed from the
/// eighth on. No two of the first 35 are alike.
struct LineStyle {
  Color color = {};
  std::size_t mark = 0, dash = 0;
};
LineStyle line_style(std::size_t i);

/// The color of the i-th line: the palette of Okabe and Ito for color-blind readers, without its
/// lightest colors.
Color line_color(std::size_t i);

/// The color of the bars of the i-th series: after the seventh, paler ones.
Color bar_color(std::size_t i);

/// How many lines before this one have half of its points or more: it hides them unless it is drawn
/// with gaps.
std::size_t lines_hidden_by(const Chart& chart, std::size_t series);

}  // namespace heed::detail
