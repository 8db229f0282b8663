// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <utility>

#include <heed/core/detail/shared.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Coverage of a mask that does not say: always `partial`.
struct UnknownCoverage {
  Coverage operator()(const Tile&) const { return Coverage::partial; }
};

/// What `predicate` takes: a callable of a Position, or of a query's and a key's.
template <class F>
concept MaskCallable = std::predicate<const F&, Position> || std::predicate<const F&, Index, Index>;

/// Any callable as a mask; made by `predicate`. Copies share the callable: a lambda that captures
/// cannot be assigned, as a mask must, and may have captured an array.
template <MaskCallable Allows, class Cover = UnknownCoverage>
class Predicate {
 public:
  /// A callable of two positions answers for all heads at once.
  static constexpr bool depends_on_head = std::predicate<const Allows&, Position>;

  explicit Predicate(Allows allowed, Cover cover = {})
      : held_(new Held{std::move(allowed), std::move(cover)}) {}

  bool allows(Position at) const {
    if constexpr (depends_on_head) {
      return held_->allowed(at);
    } else {
      return held_->allowed(at.query, at.key);
    }
  }
  Coverage coverage(Tile tile) const { return held_->cover(tile); }

 private:
  struct Held {
    Allows allowed;
    Cover cover;
  };
  detail::Shared<Held> held_;
};

/// A mask from a lambda, `(Position)` or `(Index query, Index key)`. Without `coverage`, a callable
/// of a Tile, every score is asked about. Keys and queries outside the tensors are never asked.
template <MaskCallable Allows>
Predicate<Allows> predicate(Allows allows) {
  return Predicate<Allows>(std::move(allows));
}
template <MaskCallable Allows, std::invocable<Tile> Cover>
Predicate<Allows, Cover> predicate(Allows allows, Cover coverage) {
  return Predicate<Allows, Cover>(std::move(allows), std::move(coverage));
}

}  // namespace heed::masks

namespace heed {
using masks::predicate;
}  // namespace heed
