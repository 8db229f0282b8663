// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include <heed/layers/feed_forward.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/rotary.hpp>

namespace heed {

/// What a transformer block is made of. The defaults are GPT-2's; see the models for Llama's,
/// BERT's and the original transformer's.
struct BlockOptions {
  Index model_dim = 0;
  Index heads = 1;
  Index kv_heads = 0;    // 0: as many as heads
  Index head_dim = 0;    // 0: model_dim / heads
  Index hidden_dim = 0;  // 0: 4 · model_dim
  ActivationKind activation = ActivationKind::gelu_tanh;
  bool gated = false;
  NormKind norm = NormKind::layer;
  double norm_epsilon = 1e-5;
  bool norm_before = true;
  bool bias = true;
  bool fused_projection = false;
  std::optional<NormKind> query_key_norm = {};
  std::optional<RotaryOptions> rotary = {};
  Index relative_reach = 0;  // above 0: a learned bias by distance, up to so far either way
  bool alibi = false;
  double dropout = 0;            // after attention, inside and after the feed-forward part
  double attention_dropout = 0;  // of the weights
};

namespace detail {

inline MultiHeadAttentionOptions attention_options(const BlockOptions& options) {
  return {.model_dim = options.model_dim,
          .heads = options.heads,
          .kv_heads = options.kv_heads,
          .head_dim = options.head_dim,
          .bias = options.bias,
          .output_bias = options.bias,
          .fused = options.fused_projection,
          .query_key_norm = options.query_key_norm,
          .norm_epsilon = options.norm_epsilon,
          .rotary = options.rotary,
          .relative_reach = options.relative_reach,
          .alibi = options.alibi,
          .dropout = options.attention_dropout};
}
inline FeedForwardOptions feed_forward_options(const BlockOptions& options) {
  return {.model_dim = options.model_dim,
          .hidden_dim = options.hidden_dim == 0 ? 4 * options.model_dim : options.hidden_dim,
          .activation = options.activation,
          .gated = options.gated,
          .bias = options.bias,
          .dropout = options.dropout};
}
inline NormOptions norm_options(const BlockOptions& options) {
  return {options.norm, options.model_dim, options.norm_epsilon, options.bias};
}

}  // namespace detail

}  // namespace heed
