// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/detail/picture.hpp>
#include <heed/plot/heatmap.hpp>

namespace heed::detail {

HEED_INLINE void check_heatmap(const Heatmap& heatmap) {
  const auto check = [](const char* what, std::size_t labels, Index extent) {
    if (labels != 0 && static_cast<Index>(labels) != extent) {
      throw_shape_error("heatmap: ", labels, " ", what, " labels for ", extent, " ", what, "s");
    }
  };
  check("row", heatmap.row_labels.size(), heatmap.values.extent(0));
  check("column", heatmap.column_labels.size(), heatmap.values.extent(1));
  if (!(heatmap.low <= heatmap.high) || heatmap.high - heatmap.low > 1.7e308) {
    throw_invalid_argument("heatmap: colors from ", heatmap.low, " to ", heatmap.high,
                           "; expected a finite range, low first");
  }
}

HEED_INLINE ColorRange range_of(const Heatmap& heatmap) {
  if (!heatmap.categories.empty()) {
    return {0, static_cast<double>(std::max<std::size_t>(heatmap.categories.size() - 1, 1))};
  }
  if (heatmap.colors != ColorMap::diverging) return {heatmap.low, heatmap.high};
  // Half of the largest number, so that the difference of both ends is finite.
  const double most = std::numeric_limits<double>::max() / 2;
  const double size = std::min(most, std::max(std::fabs(heatmap.low), std::fabs(heatmap.high)));
  return {-size, size};
}

HEED_INLINE double share_of(const Heatmap& heatmap, double value) {
  const auto [low, high] = range_of(heatmap);
  if (value != value) return value;
  if (high > low) {
    const double share = (value - low) / (high - low);
    return goes_by_root(heatmap) && share > 0 ? std::sqrt(share) : share;
  }
  return heatmap.colors == ColorMap::diverging ? 0.5 : 0.0;
}

HEED_INLINE bool is_masked(const Heatmap& heatmap, double value) {
  if (value == -std::numeric_limits<double>::infinity()) return true;
  return value == 0 && heatmap.low >= 0 && heatmap.zeros_are_masked && heatmap.categories.empty();
}

HEED_INLINE std::string masked_meaning(const Heatmap& heatmap) {
  const bool zero = heatmap.low >= 0 && heatmap.zeros_are_masked;
  return zero ? "masked (exactly 0)" : "masked (-∞)";
}

HEED_INLINE Heatmap shrunk(const Heatmap& heatmap, Index rows, Index columns) {
  Heatmap small;
  small.title = heatmap.title;
  small.row_title = heatmap.row_title;
  small.column_title = heatmap.column_title;
  small.low = heatmap.low;
  small.high = heatmap.high;
  small.colors = heatmap.colors;
  small.by_root = heatmap.by_root;
  small.zeros_are_masked = heatmap.zeros_are_masked;
  small.categories = heatmap.categories;
  small.values = Tensor<double, 2>(
      {parts_of(heatmap.values.extent(0), rows), parts_of(heatmap.values.extent(1), columns)});
  Tensor<double, 2> counts(small.values.extents());
  for (double& value : small.values) value = std::numeric_limits<double>::quiet_NaN();
  for (Index row = 0; row < heatmap.values.extent(0); ++row) {
    for (Index column = 0; column < heatmap.values.extent(1); ++column) {
      const double value = heatmap.values(row, column);
      double& sum = small.values(row / rows, column / columns);
      double& count = counts(row / rows, column / columns);
      if (value != value) continue;
      if (!heatmap.categories.empty()) {
        sum = sum >= value ? sum : value;
      } else if (value == -std::numeric_limits<double>::infinity()) {
        if (count == 0) sum = value;
      } else {
        sum = count == 0 ? value : sum + value;
        count += 1;
      }
    }
  }
  for (Index i = 0; i < small.values.size(); ++i) {
    if (counts.data()[i] > 0) small.values.data()[i] /= counts.data()[i];
  }
  return small;
}

HEED_INLINE std::string shrunk_note(const Heatmap& heatmap, Index rows, Index columns) {
  return std::string("a cell is the ") + (heatmap.categories.empty() ? "mean" : "most") + " of " +
         std::to_string(rows) + " x " + std::to_string(columns);
}

}  // namespace heed::detail
