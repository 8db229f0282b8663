// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Documents packed one after another into one sequence: each sees itself only. `offsets` are the
/// borders 0, end of the first, …, total; positions outside see nothing and are seen by nobody.
/// Combine with Causal for packed training batches.
class Segments {
 public:
  static constexpr bool depends_on_head = false;

  explicit Segments(detail::SharedArray<Index> offsets) : offsets_(std::move(offsets)) {
    if (offsets_.size() == 0 || offsets_[0] != 0) {
      throw_shape_error("Segments: offsets must begin with 0");
    }
    for (Index i = 1; i < offsets_.size(); ++i) {
      if (offsets_[i] < offsets_[i - 1]) {
        throw_shape_error("Segments: offsets fall from ", offsets_[i - 1], " to ", offsets_[i]);
      }
    }
  }

  /// Where the document of a position begins, for positions up to the last offset.
  Index begin(Index position) const { return offsets_[segment(position)]; }

  bool allows(Position at) const {
    return inside(at.query) && inside(at.key) && segment(at.query) == segment(at.key);
  }
  Coverage coverage(Tile tile) const {
    const Index first_query = tile.first_query < 0 ? 0 : tile.first_query;
    const Index last_query = tile.last_query < total() ? tile.last_query : total() - 1;
    const Index last_key = tile.last_key < total() ? tile.last_key : total() - 1;
    if (first_query > last_query || tile.first_key > last_key) return Coverage::none;
    const Index lowest = segment(first_query), highest = segment(last_query);
    const Index first = segment(tile.first_key), last = segment(last_key);
    if (last < lowest || first > highest) return Coverage::none;
    const bool whole = first_query == tile.first_query && last_query == tile.last_query &&
                       last_key == tile.last_key;
    return whole && lowest == highest && first == last ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    Index key = tile.first_key;
    for (Index at = inside(key) ? segment(key) : offsets_.size(); at + 1 < offsets_.size(); ++at) {
      const std::uint64_t own =
          lanes_between(offsets_[at] - tile.first_query, offsets_[at + 1] - 1 - tile.first_query);
      for (; key < offsets_[at + 1] && key <= tile.last_key; ++key) *words++ = own;
    }
    for (; key <= tile.last_key; ++key) *words++ = 0;
  }
  void check(MaskShape shape) const { detail::check_describes("Segments", total(), shape); }

 private:
  Index total() const { return offsets_[offsets_.size() - 1]; }
  bool inside(Index position) const { return position >= 0 && position < total(); }
  /// The last segment that begins at or before a position inside; empty segments hold none.
  Index segment(Index position) const {
    Index low = 0, high = offsets_.size() - 1;
    while (low + 1 < high) {
      const Index middle = low + (high - low) / 2;
      (offsets_[middle] <= position ? low : high) = middle;
    }
    return low;
  }

  detail::SharedArray<Index> offsets_;
};

}  // namespace heed::masks
