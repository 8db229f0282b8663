// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Prefix language model: the first `length` keys are seen by everyone, the rest is causal.
/// One length for all sequences, or one per batch item. Raffel et al. 2020 (T5).
class Prefix {
 public:
  static constexpr bool depends_on_head = false;

  explicit Prefix(Index length) : lengths_({length}), shared_(true) {}
  explicit Prefix(detail::SharedArray<Index> lengths)
      : lengths_(std::move(lengths)), shared_(false) {}

  /// The prefix of an item; none for an item that was not given.
  Index length(Index item) const {
    return shared_ ? lengths_[0] : lengths_.has(item) ? lengths_[item] : 0;
  }

  bool allows(Position at) const { return at.key < length(at.batch) || at.key <= at.query; }
  Coverage coverage(Tile tile) const {
    const Index last_of_prefix = length(tile.batch) - 1;
    if (tile.first_key > last_of_prefix && tile.first_key > tile.last_query) return Coverage::none;
    return tile.last_key <= last_of_prefix || tile.last_key <= tile.first_query ? Coverage::full
                                                                                : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    const Index end = length(tile.batch);
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = key < end ? ~std::uint64_t{0} : lanes_between(key - tile.first_query, 63);
    }
  }
  void check(MaskShape shape) const {
    if (!shared_ && !shape.has_batch(lengths_.size())) {
      throw_shape_error("Prefix: ", lengths_.size(), " lengths for a batch of ", shape.batch);
    }
    for (const Index length : lengths_) {
      if (length < 0) throw_shape_error("Prefix: length ", length, " must not be negative");
      if (length > shape.keys && !shape.partial) {
        throw_shape_error("Prefix: names ", length, " tokens, the call has ", shape.keys,
                          "; a prefix comes in one piece, or as partial(mask)");
      }
    }
  }

 private:
  detail::SharedArray<Index> lengths_;
  bool shared_;
};

}  // namespace heed::masks
