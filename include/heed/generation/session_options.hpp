// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/cache_shape.hpp>
#include <heed/core/error.hpp>
#include <heed/layers/multi_head_attention_options.hpp>
#include <heed/masks/causal.hpp>
#include <heed/masks/mask.hpp>
#include <heed/models/language_model_options.hpp>

namespace heed {

/// How much a session can hold, and who sees whom.
struct SessionOptions {
  Index batch = 1;
  Index max_length = 0;  // tokens of each sequence; 0: the model's
  /// Above 0: from a sequence that has no room for its next tokens the oldest leave, the smallest
  /// multiple of so many that makes room, and those that stay are read again at positions 0, 1, …
  /// What comes out is that of a forward pass over the tokens that stay. 1 leaves as many as can
  /// be, and every token then costs a pass; max_length / 2 costs one pass in so many tokens.
  /// 0: what does not fit is a ShapeError.
  Index slide = 0;
  /// Tokens in a page of the caches, as CacheShape has it; 0: one page per sequence, contiguous.
  Index page_size = 0;
  Index pages = 0;  // of every cache; 0: enough for all sequences at full length
  /// Over positions in the sequences; the same for all of them, which change places.
  Mask mask = masks::Causal{};
};

namespace detail {

/// With a max_length. Throws InvalidArgument for what the model cannot.
inline SessionOptions checked_options(SessionOptions options, const LanguageModelOptions& model) {
  if (options.max_length == 0) options.max_length = model.max_length;
  const bool table = model.positions == PositionKind::learned;
  if (options.batch < 1 || options.max_length < 1 || options.page_size < 0 || options.pages < 0 ||
      options.slide < 0 || options.slide > options.max_length ||
      (table && options.max_length > model.max_length)) {
    throw_invalid_argument("Session: batch ", options.batch, ", max_length ", options.max_length,
                           " (of the model ", model.max_length, "), slide ", options.slide, ", ",
                           options.pages, " pages of ", options.page_size);
  }
  return options;
}

inline CacheShape cache_shape(const SessionOptions& options,
                              const MultiHeadAttentionOptions& attention) {
  const Index heads = attention.kv_heads, dim = attention.head_dim;
  const Index length = options.max_length, page = options.page_size;
  if (page == 0) return CacheShape::contiguous(options.batch, heads, dim, dim, length);
  auto shape = CacheShape{options.batch, heads, dim, dim, page}.for_tokens(length);
  if (options.pages > 0) shape.pages = options.pages;
  return shape;
}

}  // namespace detail

}  // namespace heed
