// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/describe.hpp>
#include <heed/masks/policy.hpp>
#include <heed/plot/heatmap.hpp>

namespace heed {

namespace detail {

/// Turns masked and seen, 0 and 1, into four categories by what attention does with the tile: skips
/// it, asks the mask for each score, or computes it without asking.
template <MaskPolicy M>
void add_tiles(Heatmap& heatmap, const M& mask, const MaskWindow& window) {
  for_each_tile(mask, window, [&](const Tile& tile, Coverage coverage) {
    for (Index query = tile.first_query; query <= tile.last_query; ++query) {
      for (Index key = tile.first_key; key <= tile.last_key; ++key) {
        double& value = heatmap.values(query - window.first_query, key);
        const bool seen = value != 0;
        value = seen ? (coverage == Coverage::full ? 3 : 2) : (coverage == Coverage::none ? 0 : 1);
      }
    }
  });
  heatmap.tile_rows = window.tile_queries;
  heatmap.tile_columns = window.tile_keys;
}

}  // namespace detail

/// One head of a mask as a heatmap: which keys each query sees. Where the window has more than one
/// tile, the picture also shows which tiles a kernel skips, which it computes by asking the mask,
/// and which it computes whole. Throws InvalidArgument for negative sizes and empty tiles, and
/// ShapeError for a mask that does not fit the window; batch and heads count as unknown.
template <MaskPolicy M>
Heatmap heatmap_of(const M& mask, const MaskWindow& window, std::string title = {}) {
  detail::check_window("heatmap_of", mask, window);
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({window.queries, window.keys});
  for (Index query = 0; query < window.queries; ++query) {
    for (Index key = 0; key < window.keys; ++key) {
      const bool seen = allows(mask, window.position(window.first_query + query, key));
      heatmap.values(query, key) = seen ? 1 : 0;
    }
  }
  heatmap.title = std::move(title);
  heatmap.colors = ColorMap::blues;
  heatmap.categories = {"masked", "seen"};
  if (window.queries > window.tile_queries || window.keys > window.tile_keys) {
    detail::add_tiles(heatmap, mask, window);
    heatmap.categories = {"masked, tile skipped", "masked, tile computed", "seen, tile computed",
                          "seen, whole tile"};
    heatmap.high = 3;
  }
  return heatmap;
}

/// The same of so many queries and keys, with the last query at the last key.
template <MaskPolicy M>
Heatmap heatmap_of(const M& mask, Index queries, Index keys, std::string title = {}) {
  return heatmap_of(mask, MaskWindow{.queries = queries, .keys = keys}, std::move(title));
}

/// A mask that differs by item and head: a heatmap for each of them, those of the first item first.
/// Throws InvalidArgument for negative sizes, ShapeError for a mask that does not fit the shape.
template <MaskPolicy M>
std::vector<Heatmap> heatmaps_of(const M& mask, const MaskShape& shape) {
  if (shape.batch < 0 || shape.heads < 0) {
    throw_invalid_argument("heatmaps_of: ", shape.batch, " items of ", shape.heads, " heads");
  }
  check_mask(mask, shape);
  std::vector<Heatmap> heatmaps;
  for (Index batch = 0; batch < shape.batch; ++batch) {
    for (Index head = 0; head < shape.heads; ++head) {
      heatmaps.push_back(
          heatmap_of(mask,
                     MaskWindow{.queries = shape.queries,
                                .keys = shape.keys,
                                .first_query = shape.first_query,
                                .batch = batch,
                                .head = head},
                     "item " + std::to_string(batch) + ", head " + std::to_string(head)));
    }
  }
  return heatmaps;
}

}  // namespace heed
