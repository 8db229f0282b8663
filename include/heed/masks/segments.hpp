// SPDX-License-Identifier: MIT
#pragma once

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

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const {
    if (at.query < 0) return {};
    if (at.query >= total()) return {total(), total()};
    const Index own = segment(at.query);
    return {offsets_[own], offsets_[own + 1]};
  }
  void check(MaskShape shape) const { detail::check_describes("Segments", total(), shape); }

 private:
  Index total() const { return offsets_[offsets_.size() - 1]; }
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
