// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// The numbers of a series: a std::vector<double> that converts from any vector of numbers.
struct SeriesNumbers : std::vector<double> {
  using std::vector<double>::vector;
  SeriesNumbers(std::vector<double> values) : vector(std::move(values)) {}  // NOLINT
  template <Viewable Values>
  SeriesNumbers(const Values& values) {  // NOLINT
    const auto view = view_of(values);
    static_assert(decltype(view)::rank() == 1, "a series shows a vector");
    reserve(static_cast<std::size_t>(view.size()));
    for (const auto& value : view) push_back(static_cast<double>(value));
  }
};

/// A line through points in their order, or bars. A point that is not finite breaks the line.
struct Series {
  std::string name = {};  // in the legend; empty: no entry
  SeriesNumbers x = {};   // empty: 0, 1, 2, …
  SeriesNumbers y = {};
  bool bars = false;   // from 0 to each y, beside those of other series at the same x
  bool right = false;  // measured by the axis on the right
};

/// Lines and bars to draw, with axes and a legend. Functions that draw it: to_terminal, to_svg,
/// to_html, to_png; write_svg, write_html, write_png.
struct Chart {
  std::vector<Series> series = {};
  std::string title = {};
  std::string x_title = {};
  std::string y_title = {};
  /// The ends of the y axis; none: from the values. Lines outside are cut off.
  std::optional<double> low = {}, high = {};
  /// Logarithmic axes: powers of ten are an equal step apart, and points at 0 and below are left
  /// out. With log_x, neither bars nor x_labels are drawn: they are an InvalidArgument.
  bool log_x = false, log_y = false;
  std::vector<std::string> x_labels = {};  // names of x = 0, 1, 2, …, in place of numbers
  /// The right axis, drawn where a series has `right`: the same as y_title, low, high and log_y.
  std::string right_title = {};
  std::optional<double> right_low = {};
  std::optional<double> right_high = {};
  bool log_right = false;
};

/// A line through the values of a vector, at x = first, first + 1, …
template <Viewable Y>
Series series_of(const Y& values, std::string name = {}, double first = 0) {
  Series series;
  series.name = std::move(name);
  series.y = values;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    series.x.push_back(first + static_cast<double>(i));
  }
  return series;
}

}  // namespace heed
