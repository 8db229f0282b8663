// SPDX-License-Identifier: MIT
#pragma once

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

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const {
    const Index end = length(at.batch);
    return {0, end > at.query ? end : at.query + 1};
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
