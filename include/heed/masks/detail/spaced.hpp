// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/masks/policy.hpp>

namespace heed::detail {

/// A mask that passes the question on to one that is not known here: Mask.
template <class M>
concept ErasesSpacing = requires(const M& mask, Tile tile, std::uint64_t* words) {
  mask.spaced_coverage(tile, Index{2});
  mask.spaced_lane_words(tile, Index{2}, words);
};

/// Every `step`-th query of a mask from `origin` on: query origin + i here is query
/// origin + i · step there. Refers to the mask.
template <MaskPolicy M>
class Spaced {
 public:
  Spaced(const M& of, Index from, Index by) : mask(of), origin(from), step(by) {}

  const M& mask;
  Index origin;
  Index step;

  Index spread(Index query) const { return origin + (query - origin) * step; }
  bool allows(Position at) const {
    at.query = spread(at.query);
    return heed::allows(mask, at);
  }
  KeyRange keys(Position at) const requires IntervalMaskPolicy<M> {
    at.query = spread(at.query);
    return mask.keys(at);
  }
  /// That of all queries between, for a mask that knows no better.
  Coverage coverage(Tile tile) const requires(!IntervalMaskPolicy<M>) {
    if constexpr (ErasesSpacing<M>) return mask.spaced_coverage(shifted(tile), step);
    tile.first_query = spread(tile.first_query);
    tile.last_query = spread(tile.last_query);
    return coverage_of(mask, tile);
  }
  void lane_words(Tile tile, std::uint64_t* words) const requires ErasesSpacing<M> {
    mask.spaced_lane_words(shifted(tile), step, words);
  }

 private:
  /// The tile with its first query where it is in the mask.
  Tile shifted(Tile tile) const {
    const Index queries = tile.queries();
    tile.first_query = spread(tile.first_query);
    tile.last_query = tile.first_query + queries - 1;
    return tile;
  }
};

/// Masks that know how to space themselves have `spaced`; others are asked about their queries.
template <MaskPolicy M>
auto spaced(const M& mask, Index origin, Index step) {
  if constexpr (requires { mask.spaced(origin, step); }) {
    return mask.spaced(origin, step);
  } else {
    return Spaced<M>(mask, origin, step);
  }
}

/// Whether a mask may tell a query_step above 1.
template <class M>
concept TellsQueryStep = requires(const M& mask) {
  mask.query_step();
};

/// Coverage and lane words of the queries first_query, first_query + step, …, as many as the tile
/// has.
template <MaskPolicy M>
Coverage spaced_coverage(const M& mask, const Tile& tile, Index step) {
  if constexpr (ErasesSpacing<M>) return mask.spaced_coverage(tile, step);
  return coverage_of(spaced(mask, tile.first_query, step), tile);
}
template <MaskPolicy M>
void spaced_lane_words(const M& mask, const Tile& tile, Index step, std::uint64_t* words) {
  if constexpr (ErasesSpacing<M>) return mask.spaced_lane_words(tile, step, words);
  fill_lane_words(spaced(mask, tile.first_query, step), tile, words);
}

}  // namespace heed::detail
