// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/policy.hpp>

// Arithmetic of positions, and whether a mask describes those of a call.
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
/// the start of the sequence, as with a growing cache or a prompt in parts.
inline void check_describes(const char* name, const char* what, Index described, Index needed,
                            const MaskShape& shape) {
  if (described >= needed || shape.partial) return;
  throw_shape_error(name, ": describes ", described, " ", what, ", the call has ", needed,
                    "; expected all of them, or partial(mask) where the others see nothing on "
                    "purpose");
}
inline void check_describes(const char* name, Index described, const MaskShape& shape) {
  check_describes(name, "tokens", described, token_count(shape), shape);
}

/// Throws if a mask names a token that the call lacks.
inline void check_names(const char* name, Index token, const MaskShape& shape) {
  if (token < token_count(shape) || shape.partial) return;
  throw_shape_error(name, ": names token ", token, ", the call has ", token_count(shape),
                    "; partial(mask) for tokens that are not there yet");
}

}  // namespace heed::detail
