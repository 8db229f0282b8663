// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/plot/detail/text.hpp>

namespace heed::detail {

/// One axis of a chart: the range it shows and the round numbers written along it.
struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;  // between ticks
  std::vector<double> ticks;

  /// Where a value lies, 0 at the low end and 1 at the high one.
  double share(double value) const { return (value - low) / (high - low); }

  /// A tick as it is written, with the digits that its step needs and no more.
  std::string label(double tick) const {
    if (std::fabs(tick) < step / 2) tick = 0;  // what rounding left of it, and never "-0"
    if (step >= 1e6 || step < 1e-4) return brief(tick);
    const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
    return fixed(tick, decimals);
  }
};

/// 1, 2 or 5 times a power of ten: the smallest that cuts `range` into at most `parts` parts.
inline double round_step(double range, Index parts) {
  const double least = range / static_cast<double>(parts);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// An axis for values from `low` to `high`, finite, with at most about `parts` + 1 ticks: as it is
/// asked for, or widened to end on ticks. A range of one value is widened around it.
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

}  // namespace heed::detail
