// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/embedding.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/mask.hpp>
#include <heed/models/token_input.hpp>

namespace heed {

/// An encoder's configuration. The defaults are BERT's.
struct EncoderOptions {
  Index vocab_size = 0;
  Index model_dim = 0;
  Index heads = 1;
  Index layers = 1;
  Index hidden_dim = 0;  // 0: 4 · model_dim
  Index max_length = 512;
  Index segments =
      2;  // kinds of token beside the token itself (first and second sentence); 0: none
  PositionKind positions = PositionKind::learned;
  Index relative_reach = 128;  // where positions are relative: distances beyond count as this one
  ActivationKind activation = ActivationKind::gelu;
  double norm_epsilon = 1e-12;
  bool norm_before = false;
  bool embedding_norm = true;
  bool fused_projection = false;
  double embedding_factor = 1;
  double dropout = 0;
  double init_std = 0.02;
};

/// Tokens that all see each other, under a padding mask: BERT (Devlin et al. 2018). Tokens (batch,
/// length) to hidden states (batch, length, model_dim), for pooling or a head.
template <Scalar T>
struct Encoder {
  using Input = Tokens;
  using Output = Tensor<T, 3>;
  struct Saved {
    typename TokenInput<T>::Saved input;
    typename Embedding<T>::Saved segments;
    typename Norm<T>::Saved embedding_norm, norm;
    typename Dropout<T>::Saved dropout;
    std::vector<typename SelfAttentionBlock<T>::Saved> blocks;
  };

  Encoder() = default;
  Encoder(const EncoderOptions& given, Random& random)
      : options(given),
        input({.vocab_size = given.vocab_size,
               .model_dim = given.model_dim,
               .positions = given.positions,
               .max_length = given.max_length,
               .init_std = given.init_std,
               .factor = given.embedding_factor},
              random),
        dropout(given.dropout, random) {
    const BlockOptions block = block_options();
    if (options.segments > 0) {
      segments.emplace(EmbeddingOptions{options.segments, options.model_dim, options.init_std},
                       random);
    }
    if (options.embedding_norm) embedding_norm.emplace(detail::norm_options(block));
    for (Index i = 0; i < options.layers; ++i) blocks.emplace_back(block, random);
    if (options.norm_before) norm.emplace(detail::norm_options(block));
  }

  /// `kinds`: the segment of every token; empty: all 0. `positions` as LanguageModel takes them.
  Output forward(const Tokens& tokens, const Mask& mask, const Tokens& kinds = {},
                 const Positions& positions = {}) const {
    auto x = embedded(tokens, kinds, positions);
    for (const auto& block : blocks) x = block.forward(std::move(x), mask, positions);
    return norm ? norm->forward(x) : x;
  }
  /// What goes into the first block.
  Output embedded(const Tokens& tokens, const Tokens& kinds = {},
                  const Positions& positions = {}) const {
    auto x = input.forward(tokens, positions);
    if (segments) x += segments->forward(segments_of(tokens, kinds));
    return embedding_norm ? embedding_norm->forward(x) : x;
  }
  Output forward(const Tokens& tokens, const Mask& mask, const Tokens& kinds, const Noise& noise,
                 Saved& saved) const {
    return forward(tokens, mask, kinds, {}, noise, saved);
  }
  Output forward(const Tokens& tokens, const Mask& mask, const Tokens& kinds,
                 const Positions& positions, const Noise& noise, Saved& saved) const {
    saved.blocks.resize(blocks.size());
    auto x = input.forward(tokens, positions, Noise{}, saved.input);
    if (segments) x += segments->forward(segments_of(tokens, kinds), saved.segments);
    if (embedding_norm) x = embedding_norm->forward(x, saved.embedding_norm);
    x = dropout.forward(std::move(x), noise, saved.dropout);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      x = blocks[i].forward(std::move(x), mask, positions, noise, saved.blocks[i]);
    }
    return norm ? norm->forward(x, saved.norm) : x;
  }
  Output forward(const Tokens& tokens, const Mask& mask, Saved& saved) const {
    return forward(tokens, mask, {}, Noise{}, saved);
  }

  void backward(Output grad, const Saved& saved, Encoder& gradients) const {
    if (norm) grad = norm->backward(grad, saved.norm, *gradients.norm);
    for (std::size_t i = blocks.size(); i-- > 0;) {
      grad = blocks[i].backward(std::move(grad), saved.blocks[i], gradients.blocks[i]);
    }
    grad = dropout.backward(std::move(grad), saved.dropout, gradients.dropout);
    if (embedding_norm) {
      grad = embedding_norm->backward(grad, saved.embedding_norm, *gradients.embedding_norm);
    }
    if (segments) segments->backward(grad, saved.segments, *gradients.segments);
    input.backward(std::move(grad), saved.input, gradients.input);
  }

  /// Lays weights out for inference; see Linear::pack.
  void pack() {
    for (auto& block : blocks) block.pack();
  }

  static auto members(auto& model) {
    return std::tuple{member("", model.input), member("segments", model.segments),
                      member("embedding_norm", model.embedding_norm),
                      member("blocks", model.blocks), member("norm", model.norm)};
  }

  EncoderOptions options;
  TokenInput<T> input;
  std::optional<Embedding<T>> segments;
  std::optional<Norm<T>> embedding_norm;
  Dropout<T> dropout;
  std::vector<SelfAttentionBlock<T>> blocks;
  std::optional<Norm<T>> norm;  // after the last block, where blocks have theirs before

 private:
  BlockOptions block_options() const {
    BlockOptions block{.model_dim = options.model_dim,
                       .heads = options.heads,
                       .hidden_dim = options.hidden_dim,
                       .activation = options.activation,
                       .norm_epsilon = options.norm_epsilon,
                       .norm_before = options.norm_before,
                       .fused_projection = options.fused_projection,
                       .dropout = options.dropout};
    detail::set_positions(block, options.positions, {}, options.relative_reach);
    return block;
  }
  static Tokens segments_of(const Tokens& tokens, const Tokens& kinds) {
    if (kinds.extents() == tokens.extents()) return kinds;
    if (!kinds.empty()) {
      throw_shape_error("Encoder: segments are ", kinds.extents(), ", tokens ", tokens.extents());
    }
    return Tokens(tokens.extents());
  }
};

}  // namespace heed
