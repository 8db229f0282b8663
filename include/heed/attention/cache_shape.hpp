// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

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

  /// One page per sequence, of at least `length` tokens: a contiguous cache. Throws ShapeError for
  /// lengths that are negative or too long to round up.
  static CacheShape contiguous(Index batch, Index key_heads, Index head_dim, Index value_dim,
                               Index length) {
    if (length < 0 || length > std::numeric_limits<Index>::max() - 95) {
      throw_shape_error("KeyValueCache: a length of ", length, " tokens");
    }
    const Index tokens = detail::larger((length + 95) / 96 * 96, 96);
    return {batch, key_heads, head_dim, value_dim, tokens, batch};
  }
  /// Pages of `page_tokens`, enough for every sequence to have `length` tokens. Throws ShapeError
  /// where they cannot be counted.
  static CacheShape paged(Index batch, Index key_heads, Index head_dim, Index value_dim,
                          Index length, Index page_tokens) {
    Index pages = -1;
    const bool sizes = batch >= 0 && length >= 0 && page_tokens > 0;
    if (!sizes ||
        __builtin_mul_overflow(batch, length / page_tokens + (length % page_tokens > 0), &pages)) {
      throw_shape_error("KeyValueCache: a batch of ", batch, " with ", length,
                        " tokens in pages of ", page_tokens);
    }
    return {batch, key_heads, head_dim, value_dim, page_tokens, pages};
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
  Index tokens = 0;
  if (__builtin_mul_overflow(shape.pages, shape.page_tokens, &tokens)) {
    throw_shape_error("KeyValueCache: ", shape.pages, " pages of ", shape.page_tokens,
                      " tokens are more than an Index counts");
  }
  return shape;
}

}  // namespace detail
}  // namespace heed
