// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include <heed/core/error.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/rotary.hpp>

namespace heed {

struct MultiHeadAttentionOptions {
  Index model_dim = 0;
  Index heads = 1;
  Index kv_heads = 0;  // 0: as many as heads; fewer are shared by groups of query heads
  Index head_dim = 0;  // 0: model_dim / heads
  Index kdim = 0;      // width of what keys come from; 0: model_dim
  Index vdim = 0;      // width of what values come from; 0: model_dim
  bool bias = true;    // of the projections to queries, keys and values
  bool output_bias = true;
  bool fused = false;  // one weight for queries, keys and values, in this order
  std::optional<NormKind> query_key_norm = {};
  double norm_epsilon = 1e-6;
  std::optional<double> scale = {};  // default 1 / √head_dim
  std::optional<RotaryOptions> rotary = {};
  Index relative_reach = 0;  // above 0: a learned bias by distance, up to so far either way
  bool alibi = false;        // a fixed one, falling with distance
  double dropout = 0;        // of the weights, in training
  /// Masks see the first query at position 0, as where queries and memory are two texts; else the
  /// last query stands on the last key.
  bool top_left = false;
};

namespace detail {

/// The options with every 0 replaced by what it stands for. Throws InvalidArgument for what cannot
/// be.
inline MultiHeadAttentionOptions completed(MultiHeadAttentionOptions options) {
  const auto refuse = [&](const char* what) {
    throw_invalid_argument("MultiHeadAttention: ", what, "; model_dim ", options.model_dim,
                           ", heads ", options.heads, ", kv_heads ", options.kv_heads,
                           ", head_dim ", options.head_dim, ", kdim ", options.kdim, ", vdim ",
                           options.vdim);
  };
  if (options.model_dim < 1 || options.heads < 1 || options.kv_heads < 0 || options.head_dim < 0 ||
      options.kdim < 0 || options.vdim < 0) {
    refuse("expected positive sizes");
  }
  if (options.kv_heads == 0) options.kv_heads = options.heads;
  if (options.heads % options.kv_heads != 0) refuse("kv_heads must divide heads");
  if (options.head_dim == 0) {
    if (options.model_dim % options.heads != 0) refuse("heads must divide model_dim");
    options.head_dim = options.model_dim / options.heads;
  }
  if (options.kdim == 0) options.kdim = options.model_dim;
  if (options.vdim == 0) options.vdim = options.model_dim;
  if (options.relative_reach < 0) refuse("relative_reach is 0 or more");
  if (!(options.dropout >= 0 && options.dropout <= 1)) refuse("dropout is a share, 0 to 1");
  if (options.fused && (options.kdim != options.model_dim || options.vdim != options.model_dim)) {
    refuse("a fused projection has one input");
  }
  return options;
}

}  // namespace detail

}  // namespace heed
