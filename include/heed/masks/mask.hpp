// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heed/core/detail/shared.hpp>
#include <heed/core/error.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Coverage of a mask that cannot tell: always `partial`.
struct UnknownCoverage {
  Coverage operator()(const Tile&) const { return Coverage::partial; }
};

/// The argument of `predicate`: a callable of a Position, or of a query's and a key's position.
template <class F>
concept MaskCallable = std::predicate<const F&, Position> || std::predicate<const F&, Index, Index>;

/// Any callable as a mask; made by `predicate`. Copies share the callable, because a lambda with
/// captures cannot be assigned, as a mask must be, and because it may have captured an array.
template <MaskCallable Allows, class Cover = UnknownCoverage>
class Predicate {
 public:
  /// A callable of two positions gives one answer for all heads.
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
  void check(MaskShape shape) const { detail::check_positions<Allows>(shape); }

 private:
  struct Held {
    Allows allowed;
    Cover cover;
  };
  detail::Shared<Held> held_;
};

/// A mask from a lambda, `(Position)` or `(Index query, Index key)`, which is copied and called
/// from several threads at once. It is never asked about keys and queries outside the tensors.
/// The optional `coverage` takes a Tile and returns its Coverage; without it, the lambda is asked
/// about every score.
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

/// Any mask as one type, for layers, containers and choices at run time. Attention asks every mask
/// by one indirect call per tile and none per score, and a Mask costs no more; inside `&`, `|` or
/// `~` it adds one per tile. Copies share the mask, which is immutable.
class Mask {
 public:
  template <class M = void>
  Mask() {
    static_assert(detail::never<M>,
                  "a mask without rules is heed::masks::Full{}, which shows all: Mask mask = "
                  "heed::masks::Full{}");
  }
  template <class M>
  requires(!std::same_as<M, Mask> && detail::LikeMask<M>)
      Mask(M mask)  // NOLINT(google-explicit-constructor): every mask is a Mask
      : held_(held(std::move(mask))) {}

  bool allows(Position at) const { return held_->allows(at); }
  Coverage coverage(Tile tile) const { return spaced_coverage(tile, 1); }
  void lane_words(Tile tile, std::uint64_t* words) const { spaced_lane_words(tile, 1, words); }
  void check(MaskShape shape) const { held_->ref.check(shape); }
  bool depends_on_head() const { return held_->ref.depends_on_head_; }
  bool asks_every_score() const { return held_->ref.asks_every_score_; }
  Index query_step() const { return held_->ref.query_step_; }
  Coverage spaced_coverage(const Tile& tile, Index step) const {
    return held_->ref.coverage_(held_->ref.mask_, tile, step);
  }
  void spaced_lane_words(const Tile& tile, Index step, std::uint64_t* words) const {
    held_->ref.lane_words_(held_->ref.mask_, tile, step, words);
  }

 private:
  friend class MaskRef;

  struct Held {
    explicit Held(const MaskRef& to) : ref(to) {}
    virtual ~Held() = default;
    virtual bool allows(const Position& at) const = 0;
    const MaskRef ref;
  };
  template <class M>
  struct Kept {
    M mask;
  };
  /// Answers at steps above 1 even if `mask` has no query_step: a mask combined with it may have
  /// one.
  template <class M>
  struct HeldAs final : Kept<M>, Held {
    explicit HeldAs(M given)
        : Kept<M>{std::move(given)}, Held(MaskRef(this->mask, std::true_type())) {}
    bool allows(const Position& at) const override { return heed::allows(this->mask, at); }
  };

  template <class M>
  static const Held* held(M mask) {
    if constexpr (detail::expect_mask<M>()) {
      return new HeldAs<M>(std::move(mask));
    } else {
      return nullptr;
    }
  }

  detail::Shared<Held> held_;
};

/// `mask &= other` hides more of what a Mask allows, `mask |= other` less.
template <MaskPolicy M>
Mask& operator&=(Mask& mask, M other) {
  return mask = mask & std::move(other);
}
template <MaskPolicy M>
Mask& operator|=(Mask& mask, M other) {
  return mask = mask | std::move(other);
}

namespace masks {
using heed::Mask;
}  // namespace masks

}  // namespace heed

namespace heed::detail {

template <class Masks>
concept ListOfMasks = requires(const Masks& masks) {
  requires MaskPolicy<std::remove_cvref_t<decltype(*masks.begin())>>;
};

}  // namespace heed::detail

namespace heed::masks {

/// One mask per head, in order of heads. A call with another number of heads is a ShapeError.
class PerHead {
 public:
  static constexpr bool depends_on_head = true;

  explicit PerHead(detail::SharedArray<Mask> masks) : masks_(std::move(masks)) {}
  /// A list of masks of one type, as std::vector<masks::SlidingWindow>.
  template <detail::ListOfMasks Masks>
  explicit PerHead(const Masks& masks) : masks_(masks.begin(), masks.end()) {}

  bool allows(Position at) const { return masks_.has(at.head) && masks_[at.head].allows(at); }
  Coverage coverage(Tile tile) const {
    return masks_.has(tile.head) ? masks_[tile.head].coverage(tile) : Coverage::none;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    if (masks_.has(tile.head)) return masks_[tile.head].lane_words(tile, words);
    for (Index i = 0; i < tile.keys(); ++i) words[i] = 0;
  }
  void check(MaskShape shape) const {
    if (!shape.has_heads(masks_.size())) {
      throw_shape_error("PerHead: ", masks_.size(), " masks for ", shape.heads, " heads");
    }
    for (const Mask& mask : masks_) mask.check(shape);
  }

 private:
  detail::SharedArray<Mask> masks_;
};

}  // namespace heed::masks
