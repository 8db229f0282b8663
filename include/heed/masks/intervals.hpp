// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/masks/detail/positions.hpp>
#include <heed/masks/policy.hpp>

// The masks in which a query sees one range of keys. `keys` says which; `allows` asks it about one
// key, and the answers for a whole tile follow from the ends of the ranges.

namespace heed::masks {

/// No mask: every query sees every key.
struct Full {
  static constexpr bool depends_on_head = false;

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position) const { return {0, std::numeric_limits<Index>::max()}; }
};

/// The look-ahead mask of a decoder: a query sees its own position and those before it.
struct Causal {
  static constexpr bool depends_on_head = false;

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const { return {0, at.query + 1}; }
  /// The same answers as `keys`, found faster: 2 % of a call of 16 tokens.
  void lane_words(Tile tile, std::uint64_t* words) const {
    const Index offset = tile.first_key - tile.first_query, count = tile.keys();
    for (Index i = 0; i < count; ++i) words[i] = lanes_between(offset + i, 63);
  }
};

/// A window side without a bound.
inline constexpr Index unbounded = -1;

/// Local attention: a query sees keys from `left` before its own position to `right` after it, both
/// ends included, as in FlashAttention's window_size; 0 means itself only. `unbounded` opens a
/// side; a call throws InvalidArgument for other negative numbers. Beltagy et al. 2020
/// (Longformer).
struct SlidingWindow {
  static constexpr bool depends_on_head = false;
  Index left = unbounded;
  Index right = 0;

  bool allows(Position at) const { return keys(at).has(at.key); }
  // A side too large to be added counts as unbounded.
  KeyRange keys(Position at) const {
    constexpr Index all = std::numeric_limits<Index>::max();
    const bool from_the_start = left == unbounded || left >= at.query;
    const bool to_the_end = right == unbounded || (at.query >= 0 && right >= all - at.query);
    return {from_the_start ? 0 : at.query - left, to_the_end ? all : at.query + right + 1};
  }
  void check(MaskShape) const {
    if (left < unbounded || right < unbounded) {
      throw_invalid_argument("SlidingWindow: left ", left, ", right ", right,
                             "; expected 0 or more, or unbounded (-1)");
    }
  }
};

/// The last `count` keys up to and including the query's own position. Throws InvalidArgument for
/// a count below 1.
inline SlidingWindow last_n(Index count) {
  if (count < 1) throw_invalid_argument("last_n: ", count, " keys; expected at least 1, itself");
  return {count - 1, 0};
}

/// The first `count` keys for every query, also those after the query; made by `first_n`.
struct FirstKeys {
  static constexpr bool depends_on_head = false;
  Index count = 0;

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position) const { return {0, count}; }
  void check(MaskShape) const {
    if (count < 0) throw_invalid_argument("first_n: ", count, " keys; expected 0 or more");
  }
};

/// The first `count` keys, or all where there are fewer. `Causal{} & (first_n(4) | last_n(256))`
/// keeps the "attention sinks" of StreamingLLM beside a window (Xiao et al. 2023), at their
/// positions in the text, where StreamingLLM counts those in its cache; the sinks of
/// AttentionOptions are logits without keys. Throws InvalidArgument for a negative count.
inline FirstKeys first_n(Index count) {
  const FirstKeys first{count};
  first.check({});
  return first;
}

/// Prefix language model: every query sees the first `length` keys; the rest is causal. One
/// length for all sequences, or one per batch item. A call must hold the whole prefix: a length
/// above its number of keys is a ShapeError, unless the mask is partial(mask). A negative length
/// is an InvalidArgument. Raffel et al. 2020 (T5).
class Prefix {
 public:
  static constexpr bool depends_on_head = false;

  explicit Prefix(Index length) : lengths_({length}), shared_(true) {}
  explicit Prefix(detail::SharedArray<Index> lengths)
      : lengths_(std::move(lengths)), shared_(false) {}

  /// The prefix length of an item; 0 for an item without one.
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
      if (length < 0) throw_invalid_argument("Prefix: length ", length, " must not be negative");
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

/// Block-local attention: blocks of `size` consecutive positions that see only themselves. A call
/// throws InvalidArgument for a size below 1.
struct Chunked {
  static constexpr bool depends_on_head = false;
  Index size = 1;

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const {
    const Index begin = detail::floor_divide(at.query, size) * size;
    return {begin, begin + size};
  }
  void check(MaskShape) const {
    if (size < 1) throw_invalid_argument("Chunked: size ", size, "; expected at least 1");
  }
};

/// Padding for sequences of unequal length in one batch: only the keys [begin, end) of batch item b
/// are real. Queries are not restricted; the rows of padded queries hold meaningless numbers. A
/// call throws ShapeError unless there is one length per item and 0 <= begin <= end <= keys; under
/// partial(mask) the end may be larger.
class Padding {
 public:
  static constexpr bool depends_on_head = false;

  /// Right padding: the first `lengths[b]` keys of item b are real.
  explicit Padding(detail::SharedArray<Index> lengths) : ends_(std::move(lengths)) {}
  explicit Padding(std::initializer_list<Index> lengths) : ends_(lengths) {}
  template <class Given>
  requires(!std::convertible_to<const Given&, detail::SharedArray<Index>> ||
           requires { requires(Given::rank() > 1); }) explicit Padding(const Given&) {
    static_assert(detail::never<Given>,
                  "Padding takes a length for each item: Padding({5}); of a matrix (batch, keys) "
                  "of what is valid, ValidKeys(matrix) makes a mask");
  }

  /// Padding on both sides: the real keys of item b are [begins[b], ends[b]).
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
      if (begin(item) < 0 || end(item) < begin(item) || !there) {
        throw_shape_error("Padding: item ", item, " has keys [", begin(item), ", ", end(item),
                          ") of ", shape.keys, there ? "" : "; partial(mask) for keys to come");
      }
    }
  }

 private:
  detail::SharedArray<Index> begins_;
  detail::SharedArray<Index> ends_;
};

/// Documents packed back to back into one sequence: each sees only itself. `offsets` are the
/// borders 0, end of the first, …, total; positions outside see nothing and are seen by nothing.
/// Combine with Causal for packed training batches. Throws InvalidArgument for offsets that fall or
/// do not begin with 0; a call throws ShapeError if it has tokens beyond the total.
class Segments {
 public:
  static constexpr bool depends_on_head = false;

  explicit Segments(std::initializer_list<Index> offsets)
      : Segments(detail::SharedArray<Index>(offsets)) {}
  explicit Segments(detail::SharedArray<Index> offsets) : offsets_(std::move(offsets)) {
    const char* expected = "; expected 0, the end of each document, …, total";
    if (offsets_.size() == 0) {
      throw_invalid_argument("Segments: no offsets", expected, groups_hint);
    }
    if (offsets_[0] != 0) {
      throw_invalid_argument("Segments: offsets begin with ", offsets_[0], expected, groups_hint);
    }
    for (Index i = 1; i < offsets_.size(); ++i) {
      if (offsets_[i] < offsets_[i - 1]) {
        throw_invalid_argument("Segments: offsets fall from ", offsets_[i - 1], " to ", offsets_[i],
                               expected, groups_hint);
      }
    }
  }

  /// The start of the document that contains a position, for positions up to the last offset.
  Index begin(Index position) const { return offsets_[segment(position)]; }

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const {
    if (at.query < 0) return {};
    if (at.query >= total()) return {total(), total()};
    const Index own = segment(at.query);
    return {offsets_[own], offsets_[own + 1]};
  }
  void check(MaskShape shape) const {
    detail::check_describes("Segments", total(), shape, groups_hint);
  }

 private:
  /// Of an error message: a caller with a number for every token wants masks::Groups.
  static constexpr const char* groups_hint = "; masks::Groups takes a number per token";

  Index total() const { return offsets_[offsets_.size() - 1]; }
  /// The last segment that begins at or before a position, which must lie inside the offsets. An
  /// empty segment is never the last: the next one begins at the same offset.
  Index segment(Index position) const {
    const auto begun = [&](Index at) { return offsets_[at] <= position; };
    return detail::first_not_past(1, offsets_.size() - 1, begun) - 1;
  }

  detail::SharedArray<Index> offsets_;
};

}  // namespace heed::masks
