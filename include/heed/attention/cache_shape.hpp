// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// What a KeyValueCache holds and in which pieces.
struct CacheShape {
  Index batch = 1;  // sequences
  Index key_heads = 1;
  Index head_dim = 1;
  Index value_dim = 1;
  /// Tokens in a page, a multiple of 16. Multiples of 96 are read without copying.
  Index page_tokens = 96;
  /// Pages in all, for all sequences.
  Index pages = 1;

  /// One page per sequence, of at least `length` tokens: a contiguous cache.
  static CacheShape contiguous(Index batch, Index key_heads, Index head_dim, Index value_dim,
                               Index length) {
    const Index tokens = detail::larger((length + 95) / 96 * 96, 96);
    return {batch, key_heads, head_dim, value_dim, tokens, batch};
  }
};

namespace detail {

/// The shape, unless no cache can have it.
inline const CacheShape& checked(const CacheShape& shape) {
  if (shape.batch < 0 || shape.key_heads < 0 || shape.head_dim < 0 || shape.value_dim < 0 ||
      shape.pages < 0 || shape.page_tokens < 16 || shape.page_tokens % 16 != 0) {
    throw_shape_error("KeyValueCache: batch ", shape.batch, ", key_heads ", shape.key_heads,
                      ", dims ", shape.head_dim, " and ", shape.value_dim, ", ", shape.pages,
                      " pages of ", shape.page_tokens, " tokens (a multiple of 16)");
  }
  return shape;
}

}  // namespace detail
}  // namespace heed
