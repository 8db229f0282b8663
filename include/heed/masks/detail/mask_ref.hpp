// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <heed/core/detail/program_code.hpp>
#include <heed/masks/detail/positions.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

/// A mask that passes the question on to one whose type is not known here: Mask.
template <class M>
concept ForwardsSpacing = requires(const M& mask, Tile tile, std::uint64_t* words) {
  mask.spaced_coverage(tile, Index{2});
  mask.spaced_lane_words(tile, Index{2}, words);
};

/// Every `step`-th query of a mask from `origin` on: query origin + i here is query
/// origin + i · step there. Refers to the mask.
template <MaskPolicy M>
class Spaced {
 public:
  Spaced(const M& of, Index from, Index by) : mask(of), origin(from), step(by) {}

  const M& mask;
  Index origin;
  Index step;

  Index spread(Index query) const { return origin + (query - origin) * step; }
  bool allows(Position at) const {
    at.query = spread(at.query);
    return heed::allows(mask, at);
  }
  KeyRange keys(Position at) const requires IntervalMaskPolicy<M> {
    at.query = spread(at.query);
    return mask.keys(at);
  }
  /// That of all queries between, for a mask that knows no better.
  Coverage coverage(Tile tile) const requires(!IntervalMaskPolicy<M>) {
    if constexpr (ForwardsSpacing<M>) return mask.spaced_coverage(shifted(tile), step);
    tile.first_query = spread(tile.first_query);
    tile.last_query = spread(tile.last_query);
    return coverage_of(mask, tile);
  }
  void lane_words(Tile tile, std::uint64_t* words) const requires ForwardsSpacing<M> {
    mask.spaced_lane_words(shifted(tile), step, words);
  }

 private:
  /// The tile with its first query where it is in the mask.
  Tile shifted(Tile tile) const {
    const Index queries = tile.queries();
    tile.first_query = spread(tile.first_query);
    tile.last_query = tile.first_query + queries - 1;
    return tile;
  }
};

/// Strided for every `by`-th query: query origin + i here is query origin + i · by there.
struct SpacedStrided {
  static constexpr bool depends_on_head = false;
  Index step;
  Index origin;
  Index by;

  bool sees(Index lane, Index key) const {
    return floor_modulo(origin + lane * by - key, step) == 0;
  }
  bool allows(Position at) const { return sees(at.query - origin, at.key); }
  Coverage coverage(Tile tile) const {
    if (by % step == 0 && !has_multiple(tile.first_key - origin, tile.last_key - origin, step)) {
      return Coverage::none;
    }
    return step == 1 ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    if (by % step == 0) {  // all queries see the same keys
      Index before_next = floor_modulo(origin - tile.first_key, step);
      for (Index key = tile.first_key; key <= tile.last_key; ++key) {
        *words++ = before_next == 0 ? ~std::uint64_t{0} : 0;
        before_next = (before_next == 0 ? step : before_next) - 1;
      }
      return;
    }
    const Index from = tile.first_query - origin, period = step < 64 ? step : 64;
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      std::uint64_t word = 0;
      for (Index first = 0; first < period; ++first) {
        if (!sees(from + first, key)) continue;
        for (Index lane = first; lane < 64; lane += period) word |= std::uint64_t{1} << lane;
      }
      *words++ = word;
    }
  }
};

/// Masks that know how to space themselves have `spaced`; others are asked about their queries.
template <MaskPolicy M>
auto spaced(const M& mask, Index origin, Index step) {
  if constexpr (requires { mask.spaced(origin, step); }) {
    return mask.spaced(origin, step);
  } else {
    return Spaced<M>(mask, origin, step);
  }
}

/// Whether a mask has a query_step().
template <class M>
concept TellsQueryStep = requires(const M& mask) {
  mask.query_step();
};

}  // namespace heed::detail

namespace heed {

class Mask;

/// Any mask as the passes see it: a pointer and its functions, called once per tile and never per
/// score. Does not own the mask, which must outlive the call.
class MaskRef {
 public:
  template <class M>
  requires(!std::same_as<M, Mask> && !std::same_as<M, MaskRef> &&
           MaskPolicy<M>) explicit MaskRef(const M& mask)
      : MaskRef(mask, std::bool_constant<detail::TellsQueryStep<M>>()) {}
  /// To the mask that it holds.
  template <std::same_as<Mask> M>
  explicit MaskRef(const M& mask) : MaskRef(mask.held_->ref) {}

  /// Throws if the mask does not fit the tensors.
  void check(const MaskShape& shape) const { check_(mask_, shape); }
  /// Whether to cache lane words from one head to the next: they are costly, and the same for all
  /// heads.
  bool shares_lane_words() const { return asks_every_score_ && !depends_on_head_; }
  /// Whether heads may see different keys.
  bool depends_on_head() const { return depends_on_head_; }
  /// See heed::query_step.
  Index query_step() const { return query_step_; }
  /// Whether the mask has a query_step() of its own: only then may it be asked at steps above 1.
  bool knows_steps() const { return knows_steps_; }

  /// For the queries first_query, first_query + step, …, as many as the tile has.
  Coverage coverage(const Tile& tile, Index step = 1) const {
    HEED_EXPECTS(step == 1 || knows_steps_);
    const detail::ProgramCode asked;
    return coverage_(mask_, tile, step);
  }
  void lane_words(const Tile& tile, Index step, std::uint64_t* words) const {
    HEED_EXPECTS(step == 1 || knows_steps_);
    const detail::ProgramCode asked;
    lane_words_(mask_, tile, step, words);
  }
  void lane_words(const Tile& tile, std::uint64_t* words) const { lane_words(tile, 1, words); }

 private:
  friend class Mask;

  template <class M, bool Steps>
  MaskRef(const M& mask, std::bool_constant<Steps>)
      : mask_(__builtin_addressof(mask)),  // the mask may have an operator& of its own
        coverage_(coverage_as<M, Steps>),
        lane_words_(lane_words_as<M, Steps>),
        check_([](const void* self, const MaskShape& shape) {
          check_mask(*static_cast<const M*>(self), shape);
        }),
        query_step_(heed::query_step(mask)),
        depends_on_head_(heed::depends_on_head(mask)),
        asks_every_score_(heed::asks_every_score(mask)),
        knows_steps_(Steps) {}

  template <class M, bool Steps>
  static Coverage coverage_as(const void* self, const Tile& tile, Index step) {
    const M& mask = *static_cast<const M*>(self);
    if constexpr (Steps) {
      if (step != 1) return coverage_of(detail::spaced(mask, tile.first_query, step), tile);
    }
    return coverage_of(mask, tile);
  }
  template <class M, bool Steps>
  static void lane_words_as(const void* self, const Tile& tile, Index step, std::uint64_t* words) {
    const M& mask = *static_cast<const M*>(self);
    if constexpr (Steps) {
      if (step != 1) {
        return fill_lane_words(detail::spaced(mask, tile.first_query, step), tile, words);
      }
    }
    fill_lane_words(mask, tile, words);
  }

  const void* mask_;
  Coverage (*coverage_)(const void*, const Tile&, Index);
  void (*lane_words_)(const void*, const Tile&, Index, std::uint64_t*);
  void (*check_)(const void*, const MaskShape&);
  Index query_step_;
  bool depends_on_head_;
  bool asks_every_score_;
  bool knows_steps_;
};

}  // namespace heed
