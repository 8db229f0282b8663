// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// What a KeyValueCache holds and in which pieces. `KeyValueCache<T>::for_tokens` counts the pages.
struct CacheShape {
  static constexpr Index same_as_keys = -1;
  Index batch = 1;  // sequences
  Index kv_heads = 1;
  Index head_dim = 1;
  Index value_dim = same_as_keys;  // same_as_keys: head_dim
  /// Tokens in a page, a multiple of 16. Multiples of 96 are read without copying.
  Index page_size = 96;
  /// Pages in all, for all sequences.
  Index pages = 1;

  /// One page per sequence, of at least `length` tokens: a contiguous cache. Throws ShapeError for
  /// lengths that are negative or too long to round up.
  static CacheShape contiguous(Index batch, Index kv_heads, Index head_dim, Index value_dim,
                               Index length) {
    if (length < 0 || length > std::numeric_limits<Index>::max() - 95) {
      throw_shape_error("KeyValueCache: a length of ", length, " tokens");
    }
    const Index tokens = detail::larger((length + 95) / 96 * 96, 96);
    return {batch, kv_heads, head_dim, value_dim, tokens, batch};
  }
  /// The same with pages enough for every sequence to have `length` tokens. Throws ShapeError where
  /// they cannot be counted.
  CacheShape for_tokens(Index length) const {
    CacheShape shape = *this;
    const bool sizes = batch >= 0 && length >= 0 && page_size > 0;
    if (!sizes || __builtin_mul_overflow(batch, length / page_size + (length % page_size > 0),
                                         &shape.pages)) {
      throw_shape_error("KeyValueCache: a batch of ", batch, " with ", length,
                        " tokens in pages of ", page_size);
    }
    return shape;
  }
};

namespace detail {

/// The shape with a value_dim, unless no cache can have it.
inline CacheShape checked(CacheShape shape) {
  if (shape.value_dim == CacheShape::same_as_keys) shape.value_dim = shape.head_dim;
  if (shape.batch < 0 || shape.kv_heads < 0 || shape.head_dim < 0 || shape.value_dim < 0 ||
      shape.pages < 0 || shape.page_size < 16 || shape.page_size % 16 != 0) {
    throw_shape_error("KeyValueCache: batch ", shape.batch, ", kv_heads ", shape.kv_heads,
                      ", dims ", shape.head_dim, " and ", shape.value_dim, ", ", shape.pages,
                      " pages of ", shape.page_size, " tokens (a multiple of 16)");
  }
  Index tokens = 0;
  if (__builtin_mul_overflow(shape.pages, shape.page_size, &tokens)) {
    throw_shape_error("KeyValueCache: ", shape.pages, " pages of ", shape.page_size,
                      " tokens are more than an Index counts");
  }
  return shape;
}

}  // namespace detail
}  // namespace heed
