// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed {

/// The share of scores that a mask lets through, and of tiles that are computed.
struct MaskStatistics {
  Index visible = 0;  // scores
  Index scores = 0;
  Index tiles_none = 0;
  Index tiles_partial = 0;
  Index tiles_full = 0;

  double visible_share() const { return share(visible, scores); }
  double computed_share() const {
    return share(tiles_partial + tiles_full, tiles_none + tiles_partial + tiles_full);
  }

 private:
  static double share(Index part, Index whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

/// The part of a mask that `describe` draws: one head. By default the last query is at the last
/// key; set first_query too if you assign queries or keys after construction.
struct MaskWindow {
  Index queries = 16;
  Index keys = 16;
  Index first_query = keys - queries;
  Index batch = 0;
  Index head = 0;
  Index tile_queries = 64;
  Index tile_keys = 96;

  Position position(Index query, Index key) const { return {batch, head, query, key, first_query}; }
};

inline constexpr const char* ascii_on = "# ";
inline constexpr const char* ascii_off = ". ";

namespace detail {

template <MaskPolicy M>
void check_window(const char* caller, const M& mask, const MaskWindow& window) {
  if (window.queries < 0 || window.keys < 0 || window.tile_queries < 1 || window.tile_keys < 1) {
    throw_invalid_argument(caller, ": ", window.queries, " queries and ", window.keys,
                           " keys in tiles of ", window.tile_queries, " × ", window.tile_keys,
                           "; expected 0 or more in tiles of 1 or more");
  }
  check_mask(mask, MaskShape{MaskShape::unknown, MaskShape::unknown, window.queries, window.keys,
                             window.first_query});
}

/// Calls `visit` with each tile of a window and what the mask says of it.
template <MaskPolicy M, class Visit>
void for_each_tile(const M& mask, const MaskWindow& window, const Visit& visit) {
  const Index end = window.first_query + window.queries;
  for (Index query = window.first_query; query < end; query += window.tile_queries) {
    const Index last_query = smaller(query + window.tile_queries, end) - 1;
    for (Index key = 0; key < window.keys; key += window.tile_keys) {
      const Index last_key = smaller(key + window.tile_keys, window.keys) - 1;
      const Tile tile{window.batch, window.head,       query, last_query, key,
                      last_key,     window.first_query};
      visit(tile, coverage_of(mask, tile));
    }
  }
}

}  // namespace detail

/// Counts scores one by one, and tiles by the mask's own coverage. Throws InvalidArgument for
/// negative sizes, empty tiles and `keys` that move back, and ShapeError for a mask that does not
/// fit the window; batch and heads count as unknown.
template <class M>
MaskStatistics statistics(const M& mask, const MaskWindow& window) {
  MaskStatistics result;
  if constexpr (detail::expect_mask<M>()) {
    detail::check_window("statistics", mask, window);
    KeyRange before;
    const Index end = window.first_query + window.queries;
    for (Index query = window.first_query; query < end; ++query) {
      if constexpr (IntervalMaskPolicy<M>) {
        const KeyRange keys = mask.keys(window.position(query, 0));
        if (query > window.first_query && (keys.begin < before.begin || keys.end < before.end)) {
          throw_invalid_argument("mask: keys {", keys.begin, ", ", keys.end, "} of query ", query,
                                 " behind {", before.begin, ", ", before.end,
                                 "} of the query before it; neither end may move back");
        }
        before = keys;
      }
      for (Index key = 0; key < window.keys; ++key) {
        result.visible += allows(mask, window.position(query, key)) ? 1 : 0;
      }
    }
    result.scores = window.queries * window.keys;
    detail::for_each_tile(mask, window, [&](const Tile&, Coverage coverage) {
      ++(coverage == Coverage::none   ? result.tiles_none
         : coverage == Coverage::full ? result.tiles_full
                                      : result.tiles_partial);
    });
  }
  return result;
}

template <class M>
MaskStatistics statistics(const M& mask, Index queries, Index keys) {
  return statistics(mask, MaskWindow{.queries = queries, .keys = keys});
}

/// A mask as text: one row per query, `on` where it may look and `off` where it may not (trailing
/// blanks removed), then the share of visible scores and the tiles that are computed. Use
/// `ascii_on` and `ascii_off` where only ASCII can be printed.
template <class M>
std::string describe(const M& mask, const MaskWindow& window, const char* on = "██",
                     const char* off = "· ") {
  std::string text;
  if constexpr (detail::expect_mask<M>()) {
    const MaskStatistics counts = statistics(mask, window);
    for (Index query = 0; query < window.queries; ++query) {
      for (Index key = 0; key < window.keys; ++key) {
        text += allows(mask, window.position(window.first_query + query, key)) ? on : off;
      }
      while (!text.empty() && text.back() == ' ') text.pop_back();
      text += '\n';
    }
    const auto percent = [](double share) {
      return std::to_string(static_cast<Index>(share * 1000 + 0.5) / 10) + "." +
             std::to_string(static_cast<Index>(share * 1000 + 0.5) % 10) + " %";
    };
    text += std::to_string(counts.visible) + " of " + std::to_string(counts.scores) +
            " scores visible (" + percent(counts.visible_share()) + "); tiles of " +
            std::to_string(window.tile_queries) + " x " + std::to_string(window.tile_keys) + ": " +
            std::to_string(counts.tiles_full) + " full, " + std::to_string(counts.tiles_partial) +
            " partial, " + std::to_string(counts.tiles_none) + " skipped\n";
  }
  return text;
}
template <class M>
std::string describe(const M& mask, Index queries, Index keys, const char* on = "██",
                     const char* off = "· ") {
  return describe(mask, MaskWindow{.queries = queries, .keys = keys}, on, off);
}

}  // namespace heed
