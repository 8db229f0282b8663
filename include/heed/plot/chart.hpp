// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A line through points in their order, or bars. A point that is not finite breaks the line.
struct Series {
  std::string name = {};  // in the legend; empty: no entry
  std::vector<double> x = {};
  std::vector<double> y = {};
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
  std::optional<double> low = {};          // ends of the y axis; none: from the values
  std::optional<double> high = {};         // lines outside are cut off
  bool log_x = false;                      // powers of ten are an equal step apart;
  bool log_y = false;                      // points at 0 and below it are left out
  std::vector<std::string> x_labels = {};  // names of x = 0, 1, 2, …, in place of numbers
  std::string right_title = {};            // as y_title, low, high, log_y, of the right axis,
  std::optional<double> right_low = {};    // drawn where a series has `right`
  std::optional<double> right_high = {};
  bool log_right = false;
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

}  // namespace heed
