// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/policy.hpp>

namespace heed {

namespace detail {

/// Joins the lane words of `first` with those of `second`, in parts that fit on the stack.
template <class A, class B, class Join>
void join_lane_words(const A& first, const B& second, const Tile& tile, std::uint64_t* words,
                     Join join) {
  constexpr Index piece = 96;
  std::uint64_t others[piece];
  fill_lane_words(first, tile, words);
  for (Tile part = tile; part.first_key <= tile.last_key; part.first_key += piece) {
    part.last_key = smaller(part.first_key + piece - 1, tile.last_key);
    fill_lane_words(second, part, others);
    for (Index i = 0; i < part.keys(); ++i, ++words) *words = join(*words, others[i]);
  }
}

/// Coverage of a combination where its parts leave a tile open: read from the lane words if these
/// are cheap, and then exact for the tiles that attention asks about. Needed because the union of
/// two ranges of keys may be no range, and the difference of two ranges may be empty although
/// neither is.
template <class M>
Coverage coverage_by_lanes(const M& mask, const Tile& tile) {
  constexpr Index most_keys = 96, piece = 16;
  if (mask.asks_every_score() || tile.queries() > 64 || tile.keys() > most_keys) {
    return Coverage::partial;
  }
  const std::uint64_t everyone = lanes_between(0, tile.queries() - 1);
  std::uint64_t words[piece], any = 0, all = everyone;
  for (Tile part = tile; part.first_key <= tile.last_key; part.first_key += piece) {
    part.last_key = smaller(part.first_key + piece - 1, tile.last_key);
    mask.lane_words(part, words);
    for (Index i = 0; i < part.keys(); ++i) {
      any |= words[i] & everyone;
      all &= words[i];
    }
    if (any != 0 && all != everyone) return Coverage::partial;
  }
  return any == 0 ? Coverage::none : Coverage::full;
}
template <class M>
concept MeantToCombine = LikeMask<M> || HasExtents<M>;
/// Two types of which one is a mask and the other is a mask, resembles one or is a tensor.
template <class A, class B>
concept LikeMasks = MeantToCombine<A> && MeantToCombine<B> &&(MaskPolicy<A> || MaskPolicy<B>);
/// A callable that is asked whether it holds a function, as std::function: `!function` is no
/// mistake.
template <class M>
concept SaysIfItHolds = requires(const M& mask) {
  mask.operator bool();
};
template <class M>
concept MaskAlone = !SaysIfItHolds<M> && MaskPolicy<M>;  // pointers and optionals end at the first
template <class A, class B>
concept LikeMasksAlone = !SaysIfItHolds<A> && !SaysIfItHolds<B> && LikeMasks<A, B>;
template <class A, class B>
constexpr bool expect_masks() {
  return expect_mask<A>() && expect_mask<B>();
}
/// The result type of a combination that does not compile, so that the combination is the only
/// error.
struct AnyMask {
  bool allows(Position) const { return true; }
};

}  // namespace detail

}  // namespace heed

namespace heed::masks {

/// Both masks allow. Two ranges of keys combine to their intersection, again a range.
template <MaskPolicy A, MaskPolicy B>
struct And {
  A first;
  B second;

  bool depends_on_head() const {
    return heed::depends_on_head(first) || heed::depends_on_head(second);
  }
  bool asks_every_score() const {
    return heed::asks_every_score(first) || heed::asks_every_score(second);
  }
  bool allows(Position at) const { return heed::allows(first, at) && heed::allows(second, at); }
  KeyRange keys(Position at) const requires IntervalMaskPolicy<A> && IntervalMaskPolicy<B> {
    const KeyRange a = first.keys(at), b = second.keys(at);
    return {detail::larger(a.begin, b.begin), detail::smaller(a.end, b.end)};
  }
  Coverage coverage(Tile tile) const {
    if constexpr (IntervalMaskPolicy<And>) return detail::interval_coverage(*this, tile);
    const Coverage a = coverage_of(first, tile);
    if (a == Coverage::none) return Coverage::none;
    const Coverage b = coverage_of(second, tile);
    if (a == Coverage::full || b == Coverage::none) return b;
    return b == Coverage::full ? a : detail::coverage_by_lanes(*this, tile);
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    detail::join_lane_words(first, second, tile, words,
                            [](std::uint64_t a, std::uint64_t b) { return a & b; });
  }
  void check(MaskShape shape) const {
    check_mask(first, shape);
    check_mask(second, shape);
  }
  /// The larger step if it is a multiple of the other.
  Index query_step() const requires(detail::TellsQueryStep<A> || detail::TellsQueryStep<B>) {
    const Index a = heed::query_step(first), b = heed::query_step(second);
    const Index more = detail::larger(a, b), less = detail::smaller(a, b);
    return less > 0 && more % less == 0 ? more : 1;
  }
  auto spaced(Index origin, Index step) const
      requires(detail::TellsQueryStep<A> || detail::TellsQueryStep<B>) {
    using SpacedA = decltype(detail::spaced(first, origin, step));
    using SpacedB = decltype(detail::spaced(second, origin, step));
    return And<SpacedA, SpacedB>{detail::spaced(first, origin, step),
                                 detail::spaced(second, origin, step)};
  }
};

/// Either mask allows. A tile is full if both together fill it.
template <MaskPolicy A, MaskPolicy B>
struct Or {
  A first;
  B second;

  bool depends_on_head() const {
    return heed::depends_on_head(first) || heed::depends_on_head(second);
  }
  bool asks_every_score() const {
    return heed::asks_every_score(first) || heed::asks_every_score(second);
  }
  bool allows(Position at) const { return heed::allows(first, at) || heed::allows(second, at); }
  Coverage coverage(Tile tile) const {
    const Coverage a = coverage_of(first, tile);
    if (a == Coverage::full) return Coverage::full;
    const Coverage b = coverage_of(second, tile);
    if (a == Coverage::none || b == Coverage::full) return b;
    return b == Coverage::none ? a : detail::coverage_by_lanes(*this, tile);
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    detail::join_lane_words(first, second, tile, words,
                            [](std::uint64_t a, std::uint64_t b) { return a | b; });
  }
  void check(MaskShape shape) const {
    check_mask(first, shape);
    check_mask(second, shape);
  }
};

/// The mask does not allow.
template <MaskPolicy M>
struct Not {
  M mask;

  bool depends_on_head() const { return heed::depends_on_head(mask); }
  bool asks_every_score() const { return heed::asks_every_score(mask); }
  bool allows(Position at) const { return !heed::allows(mask, at); }
  Coverage coverage(Tile tile) const {
    const Coverage inner = coverage_of(mask, tile);
    if (inner == Coverage::partial) return inner;
    return inner == Coverage::none ? Coverage::full : Coverage::none;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    fill_lane_words(mask, tile, words);
    for (Index i = 0; i < tile.keys(); ++i) words[i] = ~words[i];
  }
  void check(MaskShape shape) const { check_mask(mask, shape); }
};

template <class A, class B>
requires detail::LikeMasks<A, B>
auto operator&(A a, B b) {
  if constexpr (detail::expect_masks<A, B>()) {
    return And<A, B>{std::move(a), std::move(b)};
  } else {
    return detail::AnyMask{};
  }
}
template <class A, class B>
requires detail::LikeMasks<A, B>
auto operator|(A a, B b) {
  if constexpr (detail::expect_masks<A, B>()) {
    return Or<A, B>{std::move(a), std::move(b)};
  } else {
    return detail::AnyMask{};
  }
}
template <MaskPolicy M>
Not<M> operator~(M mask) {
  return {std::move(mask)};
}

// What is meant for a bool does not compile, with a sentence that names the operators above.
#define HEED_REFUSE(operation, sentence)                                                         \
  template <class A, class B>                                                                    \
  requires detail::LikeMasksAlone<A, B> detail::AnyMask operator operation(const A&, const B&) { \
    static_assert(detail::never<A>, sentence);                                                   \
    return {};                                                                                   \
  }
HEED_REFUSE(&&, "masks combine by a & b, not by a && b")  // NOLINT
HEED_REFUSE(||, "masks combine by a | b, not by a || b")  // NOLINT
HEED_REFUSE(+, "masks combine by a & b (both) and a | b (one or both), not a + b")
HEED_REFUSE(-, "what one mask shows and another does not is a & ~b, not a - b")
HEED_REFUSE(^, "what one of two masks shows is (a | b) & ~(a & b), not a ^ b")
#undef HEED_REFUSE
template <class M>
requires detail::MaskAlone<M> detail::AnyMask operator!(const M&) {
  static_assert(detail::never<M>, "the opposite of a mask is ~mask, not !mask");
  return {};
}

}  // namespace heed::masks

// Masks in a user's own namespace combine too, under `using namespace heed`.
namespace heed {
using masks::operator&;
using masks::operator|;
using masks::operator~;
using masks::operator&&;
using masks::operator||;
using masks::operator!;
}  // namespace heed

namespace heed::masks {

/// A mask that deliberately says nothing about some tokens; made by `partial`.
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

/// Permits a mask for calls with tokens that it does not describe, or without tokens that it names:
/// the same answers, without the refusal. Batch and heads must still fit.
template <MaskPolicy M>
Partial<M> partial(M mask) {
  return {std::move(mask)};
}

}  // namespace heed::masks

namespace heed {
using masks::partial;
}  // namespace heed
