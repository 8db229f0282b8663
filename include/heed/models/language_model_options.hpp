// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include <heed/layers/blocks.hpp>
#include <heed/models/position_kind.hpp>
#include <heed/models/token_input.hpp>

namespace heed {

/// A language model's configuration. The defaults are GPT-2's; `llama` gives Llama's.
struct LanguageModelOptions {
  Index vocab_size = 0;
  Index model_dim = 0;
  Index heads = 1;
  Index kv_heads = 0;  // 0: as many as heads
  Index head_dim = 0;  // 0: model_dim / heads
  Index layers = 1;
  Index hidden_dim = 0;  // 0: 4 · model_dim
  Index max_length = 1024;
  PositionKind positions = PositionKind::learned;
  RotaryOptions rotary = {};   // where positions are rotary
  Index relative_reach = 128;  // where they are relative: distances beyond count as this one
  ActivationKind activation = ActivationKind::gelu_tanh;
  bool gated = false;
  NormKind norm = NormKind::layer;
  double norm_epsilon = 1e-5;
  bool norm_before = true;
  bool bias = true;
  bool fused_projection = false;
  std::optional<NormKind> query_key_norm = {};
  bool tied_head = true;
  double dropout = 0;
  double attention_dropout = 0;  // of the weights
  double init_std = 0.02;        // of the normal distribution that weights start from

  /// Llama's kind: rotary positions, RMS norms, SwiGLU, no biases.
  static LanguageModelOptions llama() {
    LanguageModelOptions options;
    options.positions = PositionKind::rotary;
    options.activation = ActivationKind::silu;
    options.gated = true;
    options.norm = NormKind::rms;
    options.bias = false;
    options.tied_head = false;
    return options;
  }
};

namespace detail {

inline BlockOptions block_options(const LanguageModelOptions& options) {
  BlockOptions block{.model_dim = options.model_dim,
                     .heads = options.heads,
                     .kv_heads = options.kv_heads,
                     .head_dim = options.head_dim,
                     .hidden_dim = options.hidden_dim,
                     .activation = options.activation,
                     .gated = options.gated,
                     .norm = options.norm,
                     .norm_epsilon = options.norm_epsilon,
                     .norm_before = options.norm_before,
                     .bias = options.bias,
                     .fused_projection = options.fused_projection,
                     .query_key_norm = options.query_key_norm,
                     .dropout = options.dropout,
                     .attention_dropout = options.attention_dropout};
  set_positions(block, options.positions, options.rotary, options.relative_reach);
  return block;
}
inline TokenInputOptions token_input_options(const LanguageModelOptions& options) {
  return {.vocab_size = options.vocab_size,
          .model_dim = options.model_dim,
          .positions = options.positions,
          .max_length = options.max_length,
          .init_std = options.init_std,
          .dropout = options.dropout};
}

}  // namespace detail

}  // namespace heed
