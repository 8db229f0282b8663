// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heed/attention/packed.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/embedding.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>
#include <heed/models/model_ends.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// An encoder's configuration; `bert` gives BERT's.
struct EncoderOptions {
  Index vocab_size = 0;
  Index layers = 1;             // blocks
  Index max_length = 512;       // of learned positions
  Index segments = 0;           // kinds of token, such as first and second sentence; 0: none
  bool embedding_norm = false;  // a norm of what goes into the first block
  double embedding_factor = 1;  // on the embeddings
  double init_std = 0.02;       // of the normal distribution that embeddings start from
  BlockOptions block = {};      // its dropout is that of the embeddings too

  /// BERT's: the given block with norms after its parts, a norm_epsilon of 1e-12 and exact GELU;
  /// two segments, and a norm of the embeddings.
  static EncoderOptions bert(BlockOptions block = {}) {
    block.activation = ActivationKind::gelu;
    block.norm_epsilon = 1e-12;
    block.norm_before = false;
    return {.segments = 2, .embedding_norm = true, .block = block};
  }
};

/// An encoder, in which tokens see each other under a padding mask: BERT (Devlin et al. 2018), by
/// its options. Tokens (batch, length) to hidden states (batch, length, model_dim), for pooling or
/// a head.
template <ModelScalar T>
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
  Encoder(const EncoderOptions& given, Random& random = detail::expect_random<T>());

  /// `kinds` (batch, length): the segment of each token; empty: all 0. Throws ShapeError for other
  /// extents, InvalidArgument for segments that the model lacks. For the rest, see
  /// LanguageModel::forward.
  Output forward(const Tokens& tokens, const Mask& mask = masks::Full{}, const Tokens& kinds = {},
                 const Positions& positions = {}) const;
  /// Hidden states of many texts that lie back to back in `tokens` (1, total), each in segment 0
  /// and with positions from 0 on: none is padded, and each has the bits of a call by itself.
  /// Throws ShapeError for offsets that do not ascend from 0 to the total.
  Output forward_packed(const Tokens& tokens, const PackedOffsets& texts,
                        const Mask& mask = masks::Full{}) const;
  /// The input of the first block.
  Output embedded(const Tokens& tokens, const Tokens& kinds = {},
                  const Positions& positions = {}) const;
  Output forward(const Tokens& tokens, const Mask& mask, const Tokens& kinds, const Noise& noise,
                 Saved& saved) const {
    return forward(tokens, mask, kinds, {}, noise, saved);
  }
  Output forward(const Tokens& tokens, const Mask& mask, const Tokens& kinds,
                 const Positions& positions, const Noise& noise, Saved& saved) const;
  Output forward(const Tokens& tokens, const Mask& mask, Saved& saved) const {
    return forward(tokens, mask, {}, Noise{}, saved);
  }
  Output forward(const Tokens& tokens, Saved& saved) const {
    return forward(tokens, masks::Full{}, saved);
  }

  void backward(Output grad, const Saved& saved, Encoder& gradients) const;
  /// See LanguageModel::check_saved.
  void check_saved(const Saved& saved) const;

  /// Lays weights out for inference; see Linear::pack.
  void pack() {
    for (auto& block : blocks) block.pack();
  }

  static auto members(auto& model) {
    return Members{member("", model.input),
                   member("segments", model.segments),
                   member("embedding_norm", model.embedding_norm),
                   member("", model.dropout),
                   member("blocks", model.blocks),
                   member("norm", model.norm)};
  }

  EncoderOptions options;
  TokenInput<T> input;
  std::optional<Embedding<T>> segments;
  std::optional<Norm<T>> embedding_norm;
  Dropout<T> dropout;
  std::vector<SelfAttentionBlock<T>> blocks;
  std::optional<Norm<T>> norm;  // after the last block, where blocks have their norms before

 private:
  Tokens segments_of(const Tokens& tokens, const Tokens& kinds) const {
    for (const Index kind : kinds) {
      if (segments || kind == 0) continue;
      throw_invalid_argument("Encoder: a token of segment ", kind, ", the model has no segments");
    }
    if (kinds.extents() == tokens.extents()) return kinds;
    if (!kinds.empty()) {
      throw_shape_error("Encoder: segments are ", kinds.extents(), ", tokens ", tokens.extents());
    }
    return Tokens(tokens.extents());
  }
};

template <ModelScalar T>
Encoder<T>::Encoder(const EncoderOptions& given, Random& random)
    : options(given),
      input({.vocab_size = given.vocab_size,
             .model_dim = given.block.model_dim,
             .positions = given.block.positions,
             .max_length = given.max_length,
             .init_std = given.init_std,
             .factor = given.embedding_factor},
            random),
      dropout(given.block.dropout, random) {
  const BlockOptions& block = options.block;
  detail::check_sizes("Encoder", options.layers, options.max_length);
  if (options.segments < 0) {
    throw_invalid_argument("Encoder: segments ", options.segments, ", expected 0 or more");
  }
  if (options.segments > 0) {
    segments.emplace(EmbeddingOptions{options.segments, block.model_dim, options.init_std}, random);
  }
  if (options.embedding_norm) embedding_norm.emplace(detail::norm_options(block));
  for (Index i = 0; i < options.layers; ++i) blocks.emplace_back(block, random);
  if (block.norm_before) norm.emplace(detail::norm_options(block));
}

template <ModelScalar T>
auto Encoder<T>::forward(const Tokens& tokens, const Mask& mask, const Tokens& kinds,
                         const Positions& positions) const -> Output {
  auto x = embedded(tokens, kinds, positions);
  for (const auto& block : blocks) x = block.forward(std::move(x), mask, positions);
  return norm ? norm->forward(x) : x;
}

template <ModelScalar T>
auto Encoder<T>::forward_packed(const Tokens& tokens, const PackedOffsets& texts,
                                const Mask& mask) const -> Output {
  detail::check_offsets("text", texts.queries, tokens.extent(1));
  const Positions positions = positions_of(masks::Segments(texts.queries), tokens.extents());
  auto x = embedded(tokens, {}, positions);
  for (const auto& block : blocks) {
    x = block.forward_around(std::move(x), [&](const Tensor<T, 3>& in) {
      return block.attention.forward_packed(in, texts, mask, positions);
    });
  }
  return norm ? norm->forward(x) : x;
}

template <ModelScalar T>
auto Encoder<T>::embedded(const Tokens& tokens, const Tokens& kinds,
                          const Positions& positions) const -> Output {
  auto x = input.forward(tokens, positions);
  const auto of_tokens = segments_of(tokens, kinds);
  if (segments) x += segments->forward(of_tokens);
  return embedding_norm ? embedding_norm->forward(x) : x;
}

template <ModelScalar T>
auto Encoder<T>::forward(const Tokens& tokens, const Mask& mask, const Tokens& kinds,
                         const Positions& positions, const Noise& noise, Saved& saved) const
    -> Output {
  saved.blocks.resize(blocks.size());
  auto x = input.forward(tokens, positions, Noise{}, saved.input);
  const auto of_tokens = segments_of(tokens, kinds);
  if (segments) x += segments->forward(of_tokens, saved.segments);
  if (embedding_norm) x = embedding_norm->forward(x, saved.embedding_norm);
  x = dropout.forward(std::move(x), noise, saved.dropout);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    x = blocks[i].forward(std::move(x), mask, positions, noise, saved.blocks[i]);
  }
  return norm ? norm->forward(x, saved.norm) : x;
}

template <ModelScalar T>
void Encoder<T>::backward(Output grad, const Saved& saved, Encoder& gradients) const {
  detail::check_backward("Encoder", *this, gradients, grad, saved,
                         input.embedding.weight.extent(1));
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

template <ModelScalar T>
void Encoder<T>::check_saved(const Saved& saved) const {
  const auto& tokens = saved.input.embedding.tokens;
  const Extents<3> x{tokens.extent(0), tokens.extent(1), input.embedding.weight.extent(1)};
  input.check_saved(saved.input, x);
  if (segments) segments->check(saved.segments.tokens);
  detail::check_saved("Encoder", !segments || saved.segments.tokens.extents() == tokens.extents());
  if (embedding_norm) embedding_norm->check_saved(saved.embedding_norm, tokens.size());
  detail::check_saved_blocks("Encoder", *this, saved, x);
}

/// The weights of attention in one block of an encoder, (batch, heads, tokens, tokens). `kinds`:
/// see Encoder::forward. Throws ShapeError for a layer that does not exist.
template <ModelScalar T>
Tensor<T, 4> attention_of(const Encoder<T>& model, const Tokens& tokens, const Mask& mask,
                          Index layer, const Tokens& kinds = {}, const Positions& positions = {}) {
  return detail::attention_of_block(model.blocks, model.embedded(tokens, kinds, positions), mask,
                                    layer, positions);
}

/// The weights of attention in all blocks of an encoder, (layers, batch, heads, tokens, tokens).
/// `kinds`: see Encoder::forward.
template <ModelScalar T>
Tensor<T, 5> attention_of(const Encoder<T>& model, const Tokens& tokens,
                          const Mask& mask = masks::Full{}, const Tokens& kinds = {},
                          const Positions& positions = {}) {
  auto x = model.embedded(tokens, kinds, positions);
  return detail::attention_of_blocks(model.blocks, x, mask, positions);
}

namespace detail {

inline void check_lengths(const char* caller, std::span<const Index> lengths,
                          const Extents<2>& tokens) {
  if (static_cast<Index>(lengths.size()) != tokens[0]) {
    throw_shape_error(caller, ": ", lengths.size(), " lengths for a batch of ", tokens[0]);
  }
  for (const Index length : lengths) {
    if (length < 0 || length > tokens[1]) {
      throw_shape_error(caller, ": length ", length, ", expected 0 to ", tokens[1]);
    }
  }
}

/// mean = the mean of `count` rows of `dim` numbers; 0 of no rows.
template <class T>
void find_mean(const T* rows, Index count, Index dim, T* mean) {
  for (Index d = 0; d < dim; ++d) mean[d] = 0;
  for (Index row = 0; row < count; ++row) {
    simd::row_kernels<T>().add(rows + row * dim, mean, dim);
  }
  for (Index d = 0; d < dim && count > 0; ++d) mean[d] /= static_cast<T>(count);
}

}  // namespace detail

/// The mean of the first lengths[b] tokens of each item, (batch, tokens, dim) to (batch, dim); 0
/// for an item without tokens. Tokens from lengths[b] on are not read. Throws ShapeError for
/// lengths that do not fit.
template <ModelScalar T>
Tensor<T, 2> mean_pool(const Tensor<T, 3>& x, const OwnedArray<Index>& lengths) {
  detail::check_lengths("mean_pool", lengths, {x.extent(0), x.extent(1)});
  const Index dim = x.extent(2);
  auto means = Tensor<T, 2>::uninitialized({x.extent(0), dim});
  for (Index item = 0; item < x.extent(0); ++item) {
    detail::find_mean(x.data() + item * x.extent(1) * dim, lengths[static_cast<std::size_t>(item)],
                      dim, means.data() + item * dim);
  }
  return means;
}

/// The gradient of mean_pool's input (batch, tokens, dim).
template <ModelScalar T>
Tensor<T, 3> mean_pool_backward(const Tensor<T, 2>& grad, const OwnedArray<Index>& lengths,
                                Index tokens) {
  detail::check_lengths("mean_pool_backward", lengths, {grad.extent(0), tokens});
  Tensor<T, 3> grad_x({grad.extent(0), tokens, grad.extent(1)});
  for (Index item = 0; item < grad.extent(0); ++item) {
    const Index length = lengths[static_cast<std::size_t>(item)];
    for (Index token = 0; token < length; ++token) {
      for (Index d = 0; d < grad.extent(1); ++d) {
        grad_x(item, token, d) = grad(item, d) / static_cast<T>(length);
      }
    }
  }
  return grad_x;
}

HEED_LINKED_LAYER(Encoder)

}  // namespace heed
