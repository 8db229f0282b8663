// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

// Scores, tiles and calls. ------------------------------------------------------------------------

/// `call_first_query` of a Position or Tile that belongs to no call.
inline constexpr Index no_call = std::numeric_limits<Index>::min();

/// One score: query `query` looks at key `key`. Positions are absolute: where a call begins
/// (AttentionOptions::first_query) is already added, so a mask need not know it. Query positions
/// are negative if there are more queries than keys and the last ones align.
struct Position {
  Index batch = 0;
  Index head = 0;
  Index query = 0;
  Index key = 0;
  /// The position of the call's first query, for masks whose rows are those of the call (Dense).
  Index call_first_query = no_call;
};

/// A rectangle of scores of one head, of any size; `lane_words` is asked for at most 64 queries.
/// Positions are absolute; both ends are included.
struct Tile {
  Index batch = 0;
  Index head = 0;
  Index first_query = 0;
  Index last_query = 0;
  Index first_key = 0;
  Index last_key = 0;
  Index call_first_query = no_call;

  Index queries() const { return last_query - first_query + 1; }
  Index keys() const { return last_key - first_key + 1; }
};

/// How much of a tile a mask lets through. `none` and `full` are promises; `partial` is always
/// correct, but the tile is then masked score by score.
enum class Coverage : std::uint8_t { none, partial, full };

/// The shape of a call, against which a mask is checked.
struct MaskShape {
  /// An unknown batch or number of heads: `describe` draws one head of one item.
  static constexpr Index unknown = -1;

  Index batch = 0;
  Index heads = 0;
  Index queries = 0;
  Index keys = 0;
  /// The lowest and highest position of any query.
  Index first_query = keys - queries;
  Index last_query = first_query + queries - 1;
  /// True inside partial(mask): queries and keys need not fit.
  bool partial = false;

  /// The four extents, as errors print them.
  std::array<Index, 4> extents() const { return {batch, heads, queries, keys}; }
  bool has_batch(Index count) const { return batch == count || batch == unknown; }
  bool has_heads(Index count) const { return heads == count || heads == unknown; }
};

/// The keys begin, …, end − 1; none if end <= begin.
struct KeyRange {
  Index begin = 0;
  Index end = 0;

  bool has(Index key) const { return begin <= key && key < end; }
};

// The concept of a mask. --------------------------------------------------------------------------

namespace detail {
/// An element of a std::vector<bool> or a std::bitset, which stands for a bool.
template <class Answer>
concept StandsForBool = std::convertible_to<Answer, bool> && requires(Answer answer) {
  answer.flip();
};
// Exactly bool or what stands for one, not just convertible: a matrix of scores can be called with
// two numbers too.
template <class Answer>
concept AnswersYesOrNo = std::same_as<Answer, bool> || StandsForBool<Answer>;
template <class M>
concept AllowsPositions = requires(const M& mask, Position at) {
  { mask.allows(at) } -> AnswersYesOrNo;
};
template <class M>
concept CalledWithPosition = requires(const M& mask, Position at) {
  { mask(at) } -> AnswersYesOrNo;
};
/// A matrix of Eigen's or the like. Its expressions answer with a bool too, but where a call has a
/// part of a sequence, positions are no rows: Dense makes a mask of it.
template <class M>
concept HasRowsAndColumns = requires(const M& matrix) {
  matrix.rows();
  matrix.cols();
};
template <class M>
concept CalledWithQueryAndKey = !HasRowsAndColumns<M> && requires(const M& mask, Index at) {
  { mask(at, at) } -> AnswersYesOrNo;
};
template <class M>
concept SaysKeys = requires(const M& mask, Position at) {
  { mask.keys(at) } -> std::same_as<KeyRange>;
};
}  // namespace detail

/// The concept of a mask: which query may attend to which key. A mask is a struct with `allows`
/// (`true` lets a score through) or with `keys` (see IntervalMaskPolicy), or a callable of a
/// Position or of a query's and a key's position. A lambda is a mask.
template <class M>
concept MaskPolicy = std::copy_constructible<M> &&
    (detail::AllowsPositions<M> || detail::CalledWithPosition<M> ||
     detail::CalledWithQueryAndKey<M> || detail::SaysKeys<M>);

/// A mask that shows each query one range of keys: `KeyRange keys(Position)`, called with the
/// position of a query; the `key` of that position is meaningless. From one query to the next,
/// neither end of the range may decrease. This alone makes a mask fast: coverage follows from the
/// first and last query of a tile, lane words from one walk over it.
template <class M>
concept IntervalMaskPolicy = MaskPolicy<M> && detail::SaysKeys<M>;

namespace detail {
template <class M>
concept HasAllows = requires {
  &M::allows;
};
template <class M>
concept HasKeys = requires {
  requires std::is_member_function_pointer_v<decltype(&M::keys)>;
};
template <class M>
concept HasCallOperator = requires {
  &M::operator();
};
template <class M>
concept HasExtents = HasRowsAndColumns<M> || requires(const M& matrix) {
  matrix.extents();
};
/// A mask, or a type so close to one that an error message helps more than another overload.
template <class M>
concept LikeMask = MaskPolicy<M> || HasAllows<M> || HasKeys<M> || HasCallOperator<M>;

/// True for a mask; any other type fails to compile, with a sentence that says how to make it a
/// mask. For functions on unconstrained `M`: a constraint would only report that nothing matches.
template <class M>
constexpr bool expect_mask() {
  if constexpr (MaskPolicy<M>) {
    return true;
  } else if constexpr (AllowsPositions<M> || SaysKeys<M> || CalledWithPosition<M> ||
                       CalledWithQueryAndKey<M>) {
    static_assert(!std::is_function_v<M>, "a function is a mask by its address: &function");
    static_assert(std::is_function_v<M>,
                  "a mask must be copyable: let it share what it cannot copy");
  } else if constexpr (HasAllows<M>) {
    static_assert(never<M>,
                  "a mask's function is `bool allows(heed::Position at) const`: at.query and "
                  "at.key are the two positions, and the answer is a bool");
  } else if constexpr (HasKeys<M>) {
    static_assert(never<M>,
                  "a mask's key ranges are `heed::KeyRange keys(heed::Position at) const`: the "
                  "keys {begin, end} that the query at.query sees");
  } else if constexpr (HasCallOperator<M>) {
    static_assert(never<M>,
                  "a lambda is a mask if it takes (heed::Index query, heed::Index key) or "
                  "(heed::Position at), answers with a bool and is not mutable");
  } else if constexpr (HasExtents<M>) {
    static_assert(never<M>,
                  "a tensor of bool is no mask by itself: wrap it, heed::masks::Dense(tensor)");
  } else {
    static_assert(never<M>,
                  "this is no mask: a mask is a lambda (heed::Index query, heed::Index key) that "
                  "answers with a bool, or a struct with `bool allows(heed::Position at) const`");
  }
  return false;
}
}  // namespace detail

// Asking any mask. -------------------------------------------------------------------------------

// A lambda may take its positions as int, or as the index type of its vectors.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
/// Whether a mask lets one score through.
template <MaskPolicy M>
bool allows(const M& mask, const Position& at) {
  if constexpr (detail::AllowsPositions<M>) {
    return mask.allows(at);
  } else if constexpr (detail::SaysKeys<M>) {
    return mask.keys(at).has(at.key);
  } else if constexpr (detail::CalledWithPosition<M>) {
    return mask(at);
  } else {
    return mask(at.query, at.key);
  }
}
#pragma GCC diagnostic pop

/// The shortcut: a mask that classifies whole tiles. Tiles of `none` are never computed, and `full`
/// tiles are computed without asking.
template <class M>
concept TiledMaskPolicy = MaskPolicy<M> && requires(const M& mask, Tile tile) {
  { mask.coverage(tile) } -> std::same_as<Coverage>;
};

/// The fast form of a partial tile of at most 64 queries: bit i of `words[j]` says whether query
/// `first_query + i` may see key `first_key + j`. Bits past the last query may hold anything.
template <class M>
concept LaneMaskPolicy = MaskPolicy<M> && requires(const M& mask, Tile tile, std::uint64_t* words) {
  { mask.lane_words(tile, words) } -> std::same_as<void>;
};

/// A mask that checks itself before every call: it throws ShapeError if it does not fit the
/// tensors, and InvalidArgument if its own parameters are invalid.
template <class M>
concept CheckedMaskPolicy = MaskPolicy<M> && requires(const M& mask, MaskShape shape) {
  { mask.check(shape) } -> std::same_as<void>;
};

namespace detail {

/// The keys that one query of a tile sees.
template <IntervalMaskPolicy M>
KeyRange keys_of(const M& mask, const Tile& tile, Index query) {
  return mask.keys({tile.batch, tile.head, query, 0, tile.call_first_query});
}

/// `after`, an end of the range of a later query than that of `before`.
inline Index not_before([[maybe_unused]] Index before, Index after) {
  HEED_EXPECTS(before <= after && "that the ranges of a mask's keys never move back");
  return after;
}

/// The first index in [from, end) that is not `past`, or `end`; all `past` ones come first.
template <class Past>
Index first_not_past(Index from, Index end, const Past& past) {
  while (from < end) {
    const Index middle = from + (end - from) / 2;
    past(middle) ? from = middle + 1 : end = middle;
  }
  return from;
}

/// Exact. The queries whose ranges end after the tile's first key are the last queries of the tile,
/// and the first of these has the leftmost begin.
template <IntervalMaskPolicy M>
Coverage interval_coverage(const M& mask, const Tile& tile) {
  const KeyRange first = keys_of(mask, tile, tile.first_query);
  const KeyRange last = keys_of(mask, tile, tile.last_query);
  not_before(first.begin, last.begin);
  not_before(first.end, last.end);
  if (last.end <= tile.first_key || first.begin > tile.last_key) return Coverage::none;
  if (last.begin <= tile.first_key && first.end > tile.last_key) return Coverage::full;
  const auto meets = [&](const KeyRange& keys) {
    return keys.begin < keys.end && keys.begin <= tile.last_key && keys.end > tile.first_key;
  };
  if (meets(first) || meets(last)) return Coverage::partial;
  Index query = first_not_past(tile.first_query, tile.last_query, [&](Index at) {
    return keys_of(mask, tile, at).end <= tile.first_key;
  });
  for (; query <= tile.last_query; ++query) {
    const KeyRange keys = keys_of(mask, tile, query);
    if (keys.begin > tile.last_key) break;
    if (keys.begin < keys.end) return Coverage::partial;
  }
  return Coverage::none;
}

}  // namespace detail

/// Coverage of a tile by any mask; `partial` for a mask that cannot tell.
template <MaskPolicy M>
Coverage coverage_of(const M& mask, const Tile& tile) {
  if constexpr (TiledMaskPolicy<M>) {
    return mask.coverage(tile);
  } else if constexpr (IntervalMaskPolicy<M>) {
    return detail::interval_coverage(mask, tile);
  } else {
    return Coverage::partial;
  }
}

/// The lane word with the queries `first … last` set, relative to a tile's first query and clipped
/// to its 64 lanes: for masks in which the queries that see a key form an interval.
inline std::uint64_t lanes_between(Index first, Index last) {
  if (first < 0) first = 0;
  if (last > 63) last = 63;
  if (first > last) return 0;
  return (~std::uint64_t{0} >> (63 - (last - first))) << first;
}

namespace detail {

/// As first_not_past, faster where it is near `from`: exponential search, then bisection.
template <class Past>
Index near_not_past(Index from, Index end, const Past& past) {
  for (Index step = 1; from < end; step *= 2) {
    const Index probe = smaller(from + step, end) - 1;
    if (!past(probe)) return first_not_past(from, probe, past);
    from = probe + 1;
  }
  return end;
}

/// The queries whose range has begun at a key are the first ones of the tile, and so are those
/// whose range has ended there. A word changes only where another range begins or ends.
template <IntervalMaskPolicy M>
void interval_lane_words(const M& mask, const Tile& tile, std::uint64_t* words) {
  const Index rows = tile.queries(), end = tile.last_key + 1;
  const auto keys = [&](Index row) { return keys_of(mask, tile, tile.first_query + row); };
  const auto begin = [&](Index row) { return row < rows ? keys(row).begin : end; };
  const auto past = [&](Index row) { return row < rows ? keys(row).end : end; };
  Index begun = 0, ended = 0, next_begin = begin(0), next_end = past(0);
  for (Index key = tile.first_key; key < end;) {
    if (next_begin <= key) next_begin = not_before(next_begin, begin(++begun));
    if (next_begin <= key) {
      begun = near_not_past(begun + 1, rows, [&](Index row) { return begin(row) <= key; });
      next_begin = begin(begun);
    }
    if (next_end <= key) next_end = not_before(next_end, past(++ended));
    if (next_end <= key) {
      ended = near_not_past(ended + 1, rows, [&](Index row) { return past(row) <= key; });
      next_end = past(ended);
    }
    const Index next = smaller(next_begin, smaller(next_end, end));
    const std::uint64_t word = lanes_between(ended, begun - 1);
    for (; key < next; ++key) *words++ = word;
  }
}

}  // namespace detail

/// Lane words of a tile of at most 64 queries by any mask, see LaneMaskPolicy.
template <MaskPolicy M>
void fill_lane_words(const M& mask, const Tile& tile, std::uint64_t* words) {
  if constexpr (LaneMaskPolicy<M>) {
    mask.lane_words(tile, words);
  } else if constexpr (IntervalMaskPolicy<M>) {
    detail::interval_lane_words(mask, tile, words);
  } else {
    const auto sees = [&](Index query, Index key) {
      return std::uint64_t{
          allows(mask, {tile.batch, tile.head, query, key, tile.call_first_query})};
    };
    // Words go from their last bit on, which takes fewer operations than shifts, and two keys at a
    // time, since each bit waits for the one before it.
    for (Index key = tile.first_key; key <= tile.last_key; key += 2) {
      const Index other = key < tile.last_key ? key + 1 : key;
      std::uint64_t word = 0, other_word = 0;
      for (Index query = tile.last_query; query >= tile.first_query; --query) {
        word += word + sees(query, key);
        other_word += other_word + sees(query, other);
      }
      *words++ = word;
      if (other > key) *words++ = other_word;
    }
  }
}

namespace detail {

/// A pointer to a function, or a std::function: there may be none.
template <class M>
concept MaybeNoFunction = std::is_assignable_v<M&, decltype(nullptr)> && requires(const M& mask) {
  { mask == nullptr } -> std::convertible_to<bool>;
};

/// Whether a callable takes positions that cannot be negative, as far as that can be seen.
template <class F>
inline constexpr bool takes_unsigned = false;
template <class R, class... P>
inline constexpr bool takes_unsigned<R (*)(P...)> = (std::is_unsigned_v<std::remove_cvref_t<P>> ||
                                                     ...);
template <class R, class... P>
inline constexpr bool takes_unsigned<R (*)(P...) noexcept> = takes_unsigned<R (*)(P...)>;
template <class R, class F, class... P>
inline constexpr bool takes_unsigned<R (F::*)(P...) const> = takes_unsigned<R (*)(P...)>;
template <class R, class F, class... P>
inline constexpr bool takes_unsigned<R (F::*)(P...) const noexcept> = takes_unsigned<R (*)(P...)>;
template <HasCallOperator F>
inline constexpr bool takes_unsigned<F> = takes_unsigned<decltype(&F::operator())>;

/// Throws InvalidArgument for a callable of unsigned positions where the first query stands before
/// the first key.
template <class F>
void check_positions(const MaskShape& shape) {
  if constexpr (takes_unsigned<F>) {
    if (shape.queries > 0 && shape.first_query < 0) {
      throw_invalid_argument("a mask of unsigned positions, where the first query stands at ",
                             shape.first_query, "; expected one that takes heed::Index");
    }
  }
}

}  // namespace detail

/// Throws if a mask does not fit the tensors; a mask without `check` fits all. InvalidArgument for
/// a null pointer to a function, for an empty std::function, and for a callable of unsigned
/// positions where a query stands before the first key.
template <MaskPolicy M>
void check_mask(const M& mask, const MaskShape& shape) {
  detail::check_positions<M>(shape);
  if constexpr (CheckedMaskPolicy<M>) mask.check(shape);
  if constexpr (detail::MaybeNoFunction<M>) {
    if (mask == nullptr) throw_invalid_argument("a mask is an empty function; expected one to ask");
  }
}

/// Whether a mask may give different answers for different heads; true unless it declares `static
/// constexpr bool depends_on_head = false`. A callable of a query's and a key's position gives one
/// answer for all heads.
template <MaskPolicy M>
bool depends_on_head(const M& mask) {
  if constexpr (requires(bool yes) { yes = mask.depends_on_head(); }) {
    return mask.depends_on_head();
  } else if constexpr (requires(bool yes) { yes = M::depends_on_head; }) {
    return M::depends_on_head;
  } else {
    return detail::AllowsPositions<M> || detail::CalledWithPosition<M> || detail::SaysKeys<M>;
  }
}

/// Whether the lane words of a mask come from asking `allows` about every score. That costs about
/// as much as the attention of one head, so a pass asks once for several heads if the mask does not
/// depend on the head.
template <MaskPolicy M>
bool asks_every_score(const M& mask) {
  if constexpr (requires(bool yes) { yes = mask.asks_every_score(); }) {
    return mask.asks_every_score();
  } else {
    return !LaneMaskPolicy<M> && !IntervalMaskPolicy<M>;
  }
}

/// The distance between queries that see some of the same keys, such as those of one parity; 1 for
/// a mask that does not say. Blocks are then made of such queries, and leave out all other keys.
/// See Strided.
template <MaskPolicy M>
Index query_step(const M& mask) {
  if constexpr (requires(Index step) { step = mask.query_step(); }) {
    return mask.query_step();
  } else {
    return 1;
  }
}

/// The bits `first` … `first` + 63 of `words` words with a stride, for −64 < first < 64 · words;
/// bits outside the words are 0.
inline std::uint64_t window_of_bits(const std::uint64_t* bits, Index words, Index first,
                                    Index stride = 1) {
  if (first < 0) return bits[0] << -first;
  const Index word = first / 64, shift = first % 64;
  std::uint64_t lanes = bits[word * stride] >> shift;
  if (shift != 0 && word + 1 < words) lanes |= bits[(word + 1) * stride] << (64 - shift);
  return lanes;
}

}  // namespace heed
