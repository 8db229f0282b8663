// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

/// One more than the last position of a call, its queries' or its keys': what a mask that describes
/// a sequence has to describe.
inline Index token_count(const MaskShape& shape) {
  return shape.last_query < shape.keys ? shape.keys : shape.last_query + 1;
}

/// Fails for a mask that describes fewer positions than a call has. More are a sequence of which
/// the call has the begin: in a cache that grows, in a prompt that comes in pieces.
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

/// Fails for a mask that names a token that a call does not have.
inline void check_names(const char* name, Index token, const MaskShape& shape) {
  if (token < token_count(shape) || shape.partial) return;
  throw_shape_error(name, ": names token ", token, ", the call has ", token_count(shape),
                    "; partial(mask) for tokens that are not there yet");
}

}  // namespace heed::detail
