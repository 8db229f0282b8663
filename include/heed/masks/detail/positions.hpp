// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/masks/policy.hpp>

// Arithmetic of positions, whether a mask describes those of a call, and sets of them.
namespace heed::detail {

/// ⌊a / b⌋, also for negative positions, which C++ would round toward zero. Throws InvalidArgument
/// for b < 1, possible in an unchecked mask.
inline Index floor_divide(Index a, Index b) {
  if (b < 1) throw_invalid_argument("a mask divides positions by ", b, "; expected at least 1");
  const Index quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}

/// a mod b in [0, b).
inline Index floor_modulo(Index a, Index b) { return a - floor_divide(a, b) * b; }

/// Whether some multiple of `step` lies in [first, last].
inline bool has_multiple(Index first, Index last, Index step) {
  return floor_divide(last, step) * step >= first;
}

/// One more than the last position of a call's queries and keys: the number of tokens that a mask
/// over a sequence has to describe.
inline Index token_count(const MaskShape& shape) {
  return shape.last_query < shape.keys ? shape.keys : shape.last_query + 1;
}

/// Throws if a mask describes fewer positions than a call has. More are allowed: the call then has
/// the start of the sequence, as with a growing cache or a prompt in parts. `hint` ends the error.
inline void check_describes(const char* name, const char* what, Index described, Index needed,
                            const MaskShape& shape, const char* hint = "") {
  if (described >= needed || shape.partial) return;
  throw_shape_error(name, ": describes ", described, " ", what, ", the call has ", needed,
                    "; expected all of them, or partial(mask) where the others see nothing on "
                    "purpose",
                    hint);
}
inline void check_describes(const char* name, Index described, const MaskShape& shape,
                            const char* hint = "") {
  check_describes(name, "tokens", described, token_count(shape), shape, hint);
}

/// Throws if a mask names a token that the call lacks.
inline void check_names(const char* name, Index token, const MaskShape& shape) {
  if (token < token_count(shape) || shape.partial) return;
  throw_shape_error(name, ": names token ", token, ", the call has ", token_count(shape),
                    "; partial(mask) for tokens that are not there yet");
}

/// A few token positions, given in any order, to count those in a range. Memory grows with their
/// number, not with their values.
class PositionSet {
 public:
  explicit PositionSet(const SharedArray<Index>& positions)
      : sorted_(SharedArray<Index>::filled(
            positions.size(), [&](Index* values) { size_ = sort(positions, values); })) {}

  Index size() const { return size_; }
  Index operator[](Index rank) const { return sorted_[rank]; }
  /// Number of members below `position`: the index of the first member that is not.
  Index rank(Index position) const {
    return first_not_past(0, size_, [&](Index at) { return sorted_[at] < position; });
  }
  bool has(Index position) const {
    const Index at = rank(position);
    return at < size() && sorted_[at] == position;
  }
  /// Number of members in [first, last].
  Index count(Index first, Index last) const {
    return first > last ? 0 : rank(last) - rank(first) + (has(last) ? 1 : 0);
  }

 private:
  /// Writes the distinct positions in ascending order and returns their number. Shell sort:
  /// <algorithm> costs every user of masks a tenth of a second of compile time.
  static Index sort(const SharedArray<Index>& positions, Index* values) {
    const Index count = positions.size();
    for (Index i = 0; i < count; ++i) values[i] = positions[i];
    for (Index gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
      for (Index i = gap; i < count; ++i) {
        const Index value = values[i];
        Index to = i;
        for (; to >= gap && values[to - gap] > value; to -= gap) values[to] = values[to - gap];
        values[to] = value;
      }
    }
    Index kept = 0;
    for (Index i = 0; i < count; ++i) {
      if (kept == 0 || values[i] != values[kept - 1]) values[kept++] = values[i];
    }
    return kept;
  }

  Index size_ = 0;
  SharedArray<Index> sorted_;
};

}  // namespace heed::detail
