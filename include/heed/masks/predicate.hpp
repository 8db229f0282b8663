// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <utility>

#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Coverage of a mask that does not say: always `partial`.
struct UnknownCoverage {
  Coverage operator()(const Tile&) const { return Coverage::partial; }
};

/// Any callable as a mask; made by `predicate`.
template <class Allows, class Cover = UnknownCoverage>
class Predicate {
 public:
  /// A callable of two positions answers for all heads at once.
  static constexpr bool depends_on_head = std::predicate<const Allows&, Position>;

  explicit Predicate(Allows allows, Cover cover = {})
      : allows_(std::move(allows)), cover_(std::move(cover)) {}

  bool allows(Position at) const {
    if constexpr (depends_on_head) {
      return allows_(at);
    } else {
      return allows_(at.query, at.key);
    }
  }
  Coverage coverage(Tile tile) const { return cover_(tile); }

 private:
  Allows allows_;
  Cover cover_;
};

/// A mask from a lambda, `(Position)` or `(Index query, Index key)`. Without `coverage`, a callable
/// of a Tile, every score is asked about. Keys and queries outside the tensors are never asked.
template <class Allows>
requires std::predicate<const Allows&, Position> || std::predicate<const Allows&, Index, Index>
    Predicate<Allows> predicate(Allows allows) {
  return Predicate<Allows>(std::move(allows));
}
template <class Allows, std::invocable<Tile> Cover>
requires std::predicate<const Allows&, Position> || std::predicate<const Allows&, Index, Index>
    Predicate<Allows, Cover> predicate(Allows allows, Cover coverage) {
  return Predicate<Allows, Cover>(std::move(allows), std::move(coverage));
}

}  // namespace heed::masks

namespace heed {
using masks::predicate;
}  // namespace heed
