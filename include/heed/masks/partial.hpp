// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/masks/policy.hpp>

namespace heed::masks {

/// A mask that says nothing about some tokens on purpose; made by `partial`.
template <MaskPolicy M>
struct Partial {
  M mask;

  bool depends_on_head() const { return heed::depends_on_head(mask); }
  bool asks_every_score() const { return heed::asks_every_score(mask); }
  bool allows(Position at) const { return heed::allows(mask, at); }
  KeyRange keys(Position at) const requires IntervalMaskPolicy<M> { return mask.keys(at); }
  Coverage coverage(Tile tile) const { return coverage_of(mask, tile); }
  void lane_words(Tile tile, std::uint64_t* words) const { fill_lane_words(mask, tile, words); }
  void check(MaskShape shape) const {
    shape.partial = true;
    check_mask(mask, shape);
  }
};

/// The mask for calls whose tokens it does not all describe, or that lack tokens which it names:
/// the same answers, without the refusal. Batch and heads must fit all the same.
template <MaskPolicy M>
Partial<M> partial(M mask) {
  return {std::move(mask)};
}

}  // namespace heed::masks

namespace heed {
using masks::partial;
}  // namespace heed
