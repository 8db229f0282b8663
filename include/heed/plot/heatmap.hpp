// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A matrix to draw, with labels and titles. Functions that draw it: to_terminal, to_svg, to_html,
/// to_png; write_svg, write_html, write_png.
struct Heatmap {
  Tensor<double, 2> values;                     // (rows, columns)
  std::vector<std::string> row_labels = {};     // one per row, UTF-8; or none: numbers from 0,
                                                // which a terminal does without
  std::vector<std::string> column_labels = {};  // the same for columns
  std::string title = {};
  std::string row_title = "query";
  std::string column_title = "key";
  double low = 0;                       // the value of the first color
  double high = 1;                      // the value of the last one
  bool numbers = false;                 // write each value into its cell
  ColorMap colors = ColorMap::viridis;  // diverging: 0 has the middle color
  /// Colors by the square root of how far a value is from `low`: the small weights of long texts
  /// differ. Not for diverging colors.
  bool by_root = false;
  /// Draw cells that are exactly 0 as masked, not as small, if `low` is not below 0. Cells that are
  /// -infinity always are.
  bool zeros_are_masked = true;
  /// Names of the values 0, 1, 2, …: a legend in place of the color bar.
  std::vector<std::string> categories = {};
  Index tile_rows = 0;     // SVG and PNG: a line after every so many rows; 0: none
  Index tile_columns = 0;  // the same of columns
};

/// A heatmap of any matrix. The labels name its rows, and its columns too if there are as many: the
/// tokens of self-attention. Throws ShapeError for labels that are not one per row.
template <class X>
requires Viewable<detail::Evaluated<X>> Heatmap heatmap_of(const X& matrix,
                                                           std::vector<std::string> labels = {},
                                                           std::string title = {}) {
  const auto& values = detail::evaluated(matrix);
  const auto view = view_of(values);
  static_assert(
      decltype(view)::rank() == 2,
      "a heatmap shows a matrix: select one, as view.select(axis, index) does, or "
      "attention_weights(queries, keys, mask, {.batch = 0, .head = 0}); heatmaps_of(weights) "
      "makes one of each head");
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({view.extent(0), view.extent(1)});
  if constexpr (decltype(view)::rank() == 2) {
    for (Index row = 0; row < view.extent(0); ++row) {
      for (Index column = 0; column < view.extent(1); ++column) {
        heatmap.values(row, column) = static_cast<double>(view(row, column));
      }
    }
  }
  const auto count = static_cast<Index>(labels.size());
  if (count != 0 && count != view.extent(0)) {
    throw_shape_error("heatmap_of: ", count, " row labels for a matrix (rows, columns) of ",
                      view.extents());
  }
  heatmap.row_labels = labels;
  if (count == view.extent(1)) heatmap.column_labels = std::move(labels);
  heatmap.title = std::move(title);
  return heatmap;
}

/// The same with labels of the rows and of the columns. Throws ShapeError for labels of columns
/// that are not one per column.
template <class X>
requires Viewable<detail::Evaluated<X>> Heatmap heatmap_of(const X& matrix,
                                                           std::vector<std::string> row_labels,
                                                           std::vector<std::string> column_labels,
                                                           std::string title = {}) {
  Heatmap heatmap = heatmap_of(matrix, std::move(row_labels), std::move(title));
  const auto count = static_cast<Index>(column_labels.size());
  if (count != 0 && count != heatmap.values.extent(1)) {
    throw_shape_error("heatmap_of: ", count, " column labels for a matrix (rows, columns) of ",
                      heatmap.values.extents());
  }
  heatmap.column_labels = std::move(column_labels);
  return heatmap;
}
/// The same with a list of words in braces, of which two would otherwise be the ends of a string.
template <class X>
requires Viewable<detail::Evaluated<X>> Heatmap
heatmap_of(const X& matrix, std::vector<std::string> row_labels,
           std::initializer_list<const char*> column_labels, std::string title = {}) {
  return heatmap_of(matrix, std::move(row_labels),
                    std::vector<std::string>(column_labels.begin(), column_labels.end()),
                    std::move(title));
}

/// The same with labels in any list of words, such as a std::array or a vector of views of text.
template <class X, class Words>
requires requires(const Words& words) { std::string(*std::begin(words)); }
Heatmap heatmap_of(const X& matrix, const Words& labels, std::string title = {}) {
  return heatmap_of(matrix, std::vector<std::string>(std::begin(labels), std::end(labels)),
                    std::move(title));
}
template <class X, class Rows, class Columns>
requires requires(const Rows& rows, const Columns& columns) {
  std::string(*std::begin(rows));
  std::string(*std::begin(columns));
}
Heatmap heatmap_of(const X& matrix, const Rows& row_labels, const Columns& column_labels,
                   std::string title = {}) {
  return heatmap_of(matrix, std::vector<std::string>(std::begin(row_labels), std::end(row_labels)),
                    std::vector<std::string>(std::begin(column_labels), std::end(column_labels)),
                    std::move(title));
}

/// A heatmap of each head of weights (batch, heads, queries, keys) or (heads, queries, keys), those
/// of the first item first; the titles tell which, "item 0, head 2". The labels name the rows of
/// each, and its columns too if there are as many. Throws ShapeError for labels that are not one
/// per row.
template <Viewable X>
std::vector<Heatmap> heatmaps_of(const X& weights, const std::vector<std::string>& labels = {}) {
  constexpr std::size_t rank = ViewOf<const X>::rank();
  static_assert(rank == 3 || rank == 4,
                "heatmaps_of shows (batch, heads, queries, keys) or (heads, queries, keys): "
                "heatmap_of(matrix) shows one matrix");
  std::vector<Heatmap> heatmaps;
  if constexpr (rank == 3 || rank == 4) {
    const auto view = detail::with_leading_axes<4>(view_of(weights));
    for (Index item = 0; item < view.extent(0); ++item) {
      const std::string of_item = rank == 4 ? "item " + std::to_string(item) + ", " : "";
      for (Index head = 0; head < view.extent(1); ++head) {
        heatmaps.push_back(
            heatmap_of(view[item][head], labels, of_item + "head " + std::to_string(head)));
      }
    }
  }
  return heatmaps;
}
template <Viewable X, class Words>
requires requires(const Words& words) { std::string(*std::begin(words)); }
std::vector<Heatmap> heatmaps_of(const X& weights, const Words& labels) {
  return heatmaps_of(weights, std::vector<std::string>(std::begin(labels), std::end(labels)));
}

/// Sets the range of the colors of all these heatmaps to the smallest and the largest finite value
/// among them, so that a color means the same in each.
inline void fit_range(std::span<Heatmap> heatmaps) {
  bool first = true;
  double low = 0, high = 1;
  for (const Heatmap& heatmap : heatmaps) {
    for (const double value : heatmap.values) {
      if (value - value != 0) continue;  // NaN, infinities
      if (first || value < low) low = value;
      if (first || value > high) high = value;
      first = false;
    }
  }
  for (Heatmap& heatmap : heatmaps) {
    if (first) continue;
    heatmap.low = low;
    heatmap.high = high;
  }
}

/// Sets the range of the colors to the smallest and the largest finite value.
inline void fit_range(Heatmap& heatmap) { fit_range(std::span(&heatmap, 1)); }

/// The weights of one text, (layers, heads, queries, keys). Converts from those of a batch of one,
/// (layers, 1, heads, queries, keys), as `attention_of` gives them; throws ShapeError for a larger
/// one.
struct LayerWeights : Tensor<float, 4> {
  LayerWeights() = default;
  LayerWeights(Tensor<float, 4> weights) : Tensor(std::move(weights)) {}  // NOLINT
  template <Viewable Weights>
  LayerWeights(const Weights& weights) : Tensor(of_one_text(view_of(weights))) {}  // NOLINT

 private:
  template <class T, std::size_t Rank>
  static Tensor of_one_text(const TensorView<T, Rank>& weights) {
    static_assert(Rank == 4 || Rank == 5,
                  "a page shows weights of (layers, heads, queries, keys), or of a batch of one: "
                  "(layers, 1, heads, queries, keys)");
    if constexpr (Rank == 5) {
      if (weights.extent(1) == 1) return copy_of(weights.select(1, 0));
      throw_shape_error("AttentionPage: weights (layers, batch, heads, queries, keys) ",
                        weights.extents(),
                        ", expected a batch of 1: weights.view().select(1, item) is one text");
    } else if constexpr (Rank == 4) {
      return copy_of(weights);
    }
  }
};

/// The weights of the same text under another mask, from a run of the model of its own: a mask
/// changes what every later layer reads, and so its weights do not follow from those under another.
struct AttentionUnder {
  std::string mask;
  LayerWeights weights;  // of the extents of the page's
};

/// The attention weights of all layers and heads for one text, to explore in a browser.
struct AttentionPage {
  LayerWeights weights;                        // each 0 to 1
  std::vector<std::string> query_labels = {};  // none, or one per query; UTF-8
  std::vector<std::string> key_labels = {};    // none, or one per key
  std::string title = {};
  std::string mask = {};  // the name of the mask of `weights`, on its button where there are others
  std::vector<AttentionUnder> others = {};  // the same text under other masks, a button for each
};

namespace detail {

/// Checks labels and range before drawing. Throws ShapeError and InvalidArgument.
void check_heatmap(const Heatmap& heatmap);

/// The values of the first and of the last color.
struct ColorRange {
  double low = 0, high = 1;
};
ColorRange range_of(const Heatmap& heatmap);

/// The place of a value among the colors, 0 to 1 between low and high; 0 if the two are equal, and
/// the middle of diverging colors.
double share_of(const Heatmap& heatmap, double value);

/// True for colors by the square root.
inline bool goes_by_root(const Heatmap& heatmap) {
  return heatmap.by_root && heatmap.colors != ColorMap::diverging && heatmap.categories.empty();
}

/// True for a cell that is drawn as masked.
bool is_masked(const Heatmap& heatmap, double value);
/// "masked (exactly 0)"
std::string masked_meaning(const Heatmap& heatmap);

/// The heatmap without labels, with each block of rows × columns values replaced by its mean
/// (without NaN and -infinity, if there are others), or for categories by its largest value.
Heatmap shrunk(const Heatmap& heatmap, Index rows, Index columns);

/// "a cell is the mean of 2 x 3"
std::string shrunk_note(const Heatmap& heatmap, Index rows, Index columns);

/// The page of to_html.
std::string html_of(const AttentionPage& page);

}  // namespace detail

}  // namespace heed
