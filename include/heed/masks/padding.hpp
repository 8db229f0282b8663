// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Sequences of unequal length in one batch: of batch item b only the keys [begin, end) are real.
/// Says nothing about queries; the rows of padded queries hold numbers nobody reads.
class Padding {
 public:
  static constexpr bool depends_on_head = false;

  /// Right padding: item b has `lengths[b]` real keys at its front.
  explicit Padding(detail::SharedArray<Index> lengths) : ends_(std::move(lengths)) {}

  /// Padding on both sides: item b's real keys are [begins[b], ends[b]).
  Padding(detail::SharedArray<Index> begins, detail::SharedArray<Index> ends)
      : begins_(std::move(begins)), ends_(std::move(ends)) {
    if (begins_.size() != ends_.size()) {
      throw_shape_error("Padding: ", begins_.size(), " begins and ", ends_.size(), " ends");
    }
  }

  /// The real keys of an item; none for an item that was not given.
  Index begin(Index item) const { return begins_.has(item) ? begins_[item] : 0; }
  Index end(Index item) const { return ends_.has(item) ? ends_[item] : 0; }

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const { return {begin(at.batch), end(at.batch)}; }
  void check(MaskShape shape) const {
    if (!shape.has_batch(ends_.size())) {
      throw_shape_error("Padding: ", ends_.size(), " lengths for a batch of ", shape.batch);
    }
    for (Index item = 0; item < ends_.size(); ++item) {
      const bool there = end(item) <= shape.keys || shape.partial;
      if (begin(item) < 0 || end(item) < 0 || !there) {
        throw_shape_error("Padding: item ", item, " has keys [", begin(item), ", ", end(item),
                          ") of ", shape.keys, there ? "" : "; partial(mask) for keys to come");
      }
    }
  }

 private:
  detail::SharedArray<Index> begins_;
  detail::SharedArray<Index> ends_;
};

}  // namespace heed::masks
