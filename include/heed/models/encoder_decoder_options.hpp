// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <heed/layers/blocks.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/position_kind.hpp>
#include <heed/models/token_input.hpp>

namespace heed {

/// An encoder-decoder's configuration. The defaults are the original transformer's.
struct EncoderDecoderOptions {
  Index source_vocab_size = 0;
  Index target_vocab_size = 0;
  Index model_dim = 0;
  Index heads = 1;
  Index encoder_layers = 1;
  Index decoder_layers = 1;
  Index hidden_dim = 0;  // 0: 4 · model_dim
  Index max_length = 512;
  PositionKind positions = PositionKind::sinusoidal;
  Index relative_reach = 128;  // where positions are relative
  ActivationKind activation = ActivationKind::relu;
  double norm_epsilon = 1e-5;
  bool norm_before = false;
  bool tied_head = false;
  double dropout = 0;

  /// Embeddings start at deviation 1 / √model_dim and are multiplied by √model_dim.
  double factor() const { return std::sqrt(static_cast<double>(model_dim)); }
};

namespace detail {

inline EncoderOptions encoder_options(const EncoderDecoderOptions& options) {
  return {.vocab_size = options.source_vocab_size,
          .model_dim = options.model_dim,
          .heads = options.heads,
          .layers = options.encoder_layers,
          .hidden_dim = options.hidden_dim,
          .max_length = options.max_length,
          .segments = 0,
          .positions = options.positions,
          .relative_reach = options.relative_reach,
          .activation = options.activation,
          .norm_epsilon = options.norm_epsilon,
          .norm_before = options.norm_before,
          .embedding_norm = false,
          .embedding_factor = options.factor(),
          .dropout = options.dropout,
          .init_std = 1 / options.factor()};
}
inline TokenInputOptions target_input_options(const EncoderDecoderOptions& options) {
  return {.vocab_size = options.target_vocab_size,
          .model_dim = options.model_dim,
          .positions = options.positions,
          .max_length = options.max_length,
          .init_std = 1 / options.factor(),
          .factor = options.factor(),
          .dropout = options.dropout};
}
inline BlockOptions block_options(const EncoderDecoderOptions& options) {
  BlockOptions block{.model_dim = options.model_dim,
                     .heads = options.heads,
                     .hidden_dim = options.hidden_dim,
                     .activation = options.activation,
                     .norm_epsilon = options.norm_epsilon,
                     .norm_before = options.norm_before,
                     .dropout = options.dropout};
  set_positions(block, options.positions, {}, options.relative_reach);
  return block;
}

}  // namespace detail

}  // namespace heed
