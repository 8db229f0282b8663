// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A matrix to look at, with what belongs around it. How it is shown is the writers' affair:
/// to_terminal, to_svg, write_png.
struct Heatmap {
  Tensor<double, 2> values;  // (rows, columns)
  std::vector<std::string> row_labels;
  std::vector<std::string> column_labels;
  std::string title;
  std::string row_title = "query";
  std::string column_title = "key";
  double low = 0;        // the value of the darkest color
  double high = 1;       // the value of the brightest one
  bool numbers = false;  // write each value into its cell
};

/// A heatmap of any matrix, labeled the same on both axes or not at all. Throws ShapeError when
/// there are labels and not one per row.
template <Viewable X>
Heatmap heatmap_of(const X& matrix, std::vector<std::string> labels = {}, std::string title = {}) {
  const auto view = view_of(matrix);
  static_assert(decltype(view)::rank() == 2, "a heatmap shows a matrix");
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({view.extent(0), view.extent(1)});
  for (Index row = 0; row < view.extent(0); ++row) {
    for (Index column = 0; column < view.extent(1); ++column) {
      heatmap.values(row, column) = static_cast<double>(view(row, column));
    }
  }
  const auto count = static_cast<Index>(labels.size());
  if (count != 0 && count != view.extent(0)) {
    throw_shape_error("heatmap_of: ", count, " labels for a matrix of ", view.extents());
  }
  heatmap.row_labels = labels;
  if (count == view.extent(1)) heatmap.column_labels = std::move(labels);
  heatmap.title = std::move(title);
  return heatmap;
}

}  // namespace heed
