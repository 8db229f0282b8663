// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Documents packed one after another into one sequence: each sees itself only. `offsets` are the
/// borders 0, end of the first, …, total; positions outside see nothing and are seen by nobody.
/// Combine with Causal for packed training batches.
class Segments {
 public:
  static constexpr bool depends_on_head = false;

  explicit Segments(std::vector<Index> offsets) : offsets_(std::move(offsets)) {
    if (offsets_.empty() || offsets_.front() != 0) {
      throw_shape_error("Segments: offsets must begin with 0");
    }
    for (std::size_t i = 1; i < offsets_.size(); ++i) {
      if (offsets_[i] < offsets_[i - 1]) {
        throw_shape_error("Segments: offsets fall from ", offsets_[i - 1], " to ", offsets_[i]);
      }
      const Index length = offsets_[i] - offsets_[i - 1];
      segment_of_.insert(segment_of_.end(), static_cast<std::size_t>(length),
                         static_cast<Index>(i - 1));
    }
  }

  bool allows(Position at) const {
    return inside(at.query) && inside(at.key) && segment(at.query) == segment(at.key);
  }
  Coverage coverage(Tile tile) const {
    const Index first_query = tile.first_query < 0 ? 0 : tile.first_query;
    const Index last_query = tile.last_query < total() ? tile.last_query : total() - 1;
    const Index last_key = tile.last_key < total() ? tile.last_key : total() - 1;
    if (first_query > last_query || tile.first_key > last_key) return Coverage::none;
    const Index lowest = segment(first_query), highest = segment(last_query);
    if (segment(last_key) < lowest || segment(tile.first_key) > highest) return Coverage::none;
    const bool whole = first_query == tile.first_query && last_query == tile.last_query &&
                       last_key == tile.last_key;
    return whole && lowest == highest && segment(tile.first_key) == segment(last_key)
               ? Coverage::full
               : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = inside(key) ? lanes_between(begin(segment(key)) - tile.first_query,
                                             begin(segment(key) + 1) - 1 - tile.first_query)
                             : 0;
    }
  }

 private:
  Index total() const { return static_cast<Index>(segment_of_.size()); }
  bool inside(Index position) const { return position >= 0 && position < total(); }
  Index segment(Index position) const { return segment_of_[static_cast<std::size_t>(position)]; }
  Index begin(Index segment) const { return offsets_[static_cast<std::size_t>(segment)]; }

  std::vector<Index> offsets_;
  std::vector<Index> segment_of_;  // [position]
};

}  // namespace heed::masks
