// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Tokens see the tokens of their own group, wherever those stand: speakers of a dialogue, turns,
/// documents in any order. `ids[i]` is the group of position i; positions outside see nothing.
class Groups {
 public:
  static constexpr bool depends_on_head = false;

  explicit Groups(detail::SharedArray<Index> ids) : ids_(std::move(ids)) {}

  bool allows(Position at) const {
    return ids_.has(at.query) && ids_.has(at.key) && ids_[at.query] == ids_[at.key];
  }
  Coverage coverage(Tile tile) const {
    const Range queries = range(tile.first_query, tile.last_query);
    const Range keys = range(tile.first_key, tile.last_key);
    if (queries.empty || keys.empty || keys.highest < queries.lowest ||
        keys.lowest > queries.highest) {
      return Coverage::none;
    }
    const bool one_group = queries.lowest == queries.highest && keys.lowest == keys.highest;
    return one_group && !queries.clipped && !keys.clipped ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    const Index first = tile.first_query < 0 ? -tile.first_query : 0;
    const Index past =
        tile.last_query < ids_.size() ? tile.queries() : ids_.size() - tile.first_query;
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      std::uint64_t word = 0;
      for (Index lane = first; ids_.has(key) && lane < past; ++lane) {
        word |= std::uint64_t{ids_[tile.first_query + lane] == ids_[key]} << lane;
      }
      *words++ = word;
    }
  }
  void check(MaskShape shape) const { detail::check_describes("Groups", ids_.size(), shape); }

 private:
  struct Range {
    Index lowest = 0, highest = 0;
    bool empty = true, clipped = false;
  };
  Range range(Index first, Index last) const {
    Range range;
    for (Index position = first; position <= last; ++position) {
      if (!ids_.has(position)) {
        range.clipped = true;
        continue;
      }
      const Index group = ids_[position];
      if (range.empty || group < range.lowest) range.lowest = group;
      if (range.empty || group > range.highest) range.highest = group;
      range.empty = false;
    }
    return range;
  }

  detail::SharedArray<Index> ids_;
};

/// Groups that follow one another, by their sizes: the turns of a dialogue, 5, 8, 6, 10 tokens.
inline Groups consecutive_groups(const detail::SharedArray<Index>& sizes) {
  Index total = 0;
  for (const Index size : sizes) {
    if (size < 0 || size > std::numeric_limits<Index>::max() - total) {
      throw_shape_error("consecutive_groups: size ", size);
    }
    total += size;
  }
  return Groups(detail::SharedArray<Index>::filled(total, [&](Index* ids) {
    for (Index group = 0; group < sizes.size(); ++group) {
      for (Index i = 0; i < sizes[group]; ++i) *ids++ = group;
    }
  }));
}

}  // namespace heed::masks
