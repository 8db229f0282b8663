// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/mask.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/model_ends.hpp>

namespace heed {

/// An encoder-decoder's configuration; `original` gives the original transformer's.
struct EncoderDecoderOptions {
  Index source_vocab_size = 0;
  Index target_vocab_size = 0;
  Index encoder_layers = 1;  // blocks
  Index decoder_layers = 1;
  Index max_length = 512;   // of learned positions; sessions take it as their default
  bool tied_head = false;   // logits by the table of target embeddings
  BlockOptions block = {};  // of both sides; its dropout is that of the embeddings too

  /// The original transformer's: the given block with sinusoidal positions, norms after its parts
  /// and ReLU.
  static EncoderDecoderOptions original(BlockOptions block = {}) {
    block.positions = PositionKind::sinusoidal;
    block.activation = ActivationKind::relu;
    block.norm_before = false;
    return {.block = block};
  }

  /// Embeddings start with a standard deviation of 1 / √model_dim and are multiplied by √model_dim.
  double factor() const { return std::sqrt(static_cast<double>(block.model_dim)); }
};

/// The masks of an encoder-decoder: for source tokens over each other, for target tokens over each
/// other, and for target tokens over the source. The defaults suit texts without padding.
struct EncoderDecoderMasks {
  Mask source = masks::Full{};
  Mask target = masks::Causal{};
  Mask memory = masks::Full{};
};

/// Positions of source and target tokens; see LanguageModel::forward.
struct EncoderDecoderPositions {
  Positions source = {};
  Positions target = {};
};

/// A model from one sequence to another, as in translation: an encoder reads the source, and a
/// decoder predicts each next token of the target from the tokens before it and the encoder's
/// output. Vaswani et al. 2017.
template <ModelScalar T>
struct EncoderDecoder {
  using Output = Tensor<T, 3>;
  using Memory = Tensor<T, 3>;
  struct Saved {
    typename Encoder<T>::Saved encoder;
    typename TokenInput<T>::Saved input;
    Memory memory;
    std::vector<typename CrossAttentionBlock<T>::Saved> blocks;
    typename Norm<T>::Saved norm;
    typename OutputHead<T>::Saved head;
  };

  EncoderDecoder() = default;
  EncoderDecoder(const EncoderDecoderOptions& given, Random& random = detail::expect_random<T>());

  /// Logits (batch, target length, target vocabulary).
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks = {},
                 const EncoderDecoderPositions& positions = {}) const;
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks,
                 const Noise& noise, Saved& saved) const {
    return forward(source, target, masks, {}, noise, saved);
  }
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks,
                 const EncoderDecoderPositions& positions, const Noise& noise, Saved& saved) const;
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks,
                 Saved& saved) const {
    return forward(source, target, masks, Noise{}, saved);
  }
  Output forward(const Tokens& source, const Tokens& target, Saved& saved) const {
    return forward(source, target, EncoderDecoderMasks{}, saved);
  }

  /// The parts of forward, for generation. `encode`: source tokens (batch, length) to the encoder's
  /// output (batch, length, model_dim). `remember`: its keys and values in each block of the
  /// decoder, computed once. `decode`: logits as forward gives them; masks.source is not read.
  /// `decode` throws ShapeError for the keys and values of another number of blocks.
  Memory encode(const Tokens& source, const Mask& mask, const Positions& positions = {}) const {
    return encoder.forward(source, mask, {}, positions);
  }
  std::vector<AttentionInputs<T>> remember(const Memory& memory) const;
  Output decode(const Tokens& target, const std::vector<AttentionInputs<T>>& memory,
                const EncoderDecoderMasks& masks, const Positions& positions = {}) const;

  void backward(const Output& grad, const Saved& saved, EncoderDecoder& gradients) const;
  /// See LanguageModel::check_saved.
  void check_saved(const Saved& saved) const;

  /// Lays weights out for inference; see Linear::pack.
  void pack() {
    encoder.pack();
    for (auto& block : blocks) block.pack();
    head.pack(input.embedding);
  }

  static auto members(auto& model) {
    return Members{member("encoder", model.encoder), member("", model.input),
                   member("blocks", model.blocks), member("norm", model.norm),
                   member("head", model.head)};
  }

  EncoderDecoderOptions options;
  Encoder<T> encoder;
  TokenInput<T> input;
  std::vector<CrossAttentionBlock<T>> blocks;
  std::optional<Norm<T>> norm;
  OutputHead<T> head;
};

template <ModelScalar T>
EncoderDecoder<T>::EncoderDecoder(const EncoderDecoderOptions& given, Random& random)
    : options(given),
      encoder({.vocab_size = given.source_vocab_size,
               .layers = given.encoder_layers,
               .max_length = given.max_length,
               .embedding_factor = given.factor(),
               .init_std = 1 / given.factor(),
               .block = given.block},
              random),
      input({.vocab_size = given.target_vocab_size,
             .model_dim = given.block.model_dim,
             .positions = given.block.positions,
             .max_length = given.max_length,
             .init_std = 1 / given.factor(),
             .factor = given.factor(),
             .dropout = given.block.dropout},
            random) {
  const BlockOptions& block = options.block;
  detail::check_sizes("EncoderDecoder", options.decoder_layers, options.max_length);
  for (Index i = 0; i < options.decoder_layers; ++i) blocks.emplace_back(block, random);
  if (block.norm_before) norm.emplace(detail::norm_options(block));
  head = OutputHead<T>(block.model_dim, options.target_vocab_size, options.tied_head, random);
}

template <ModelScalar T>
auto EncoderDecoder<T>::forward(const Tokens& source, const Tokens& target,
                                const EncoderDecoderMasks& masks,
                                const EncoderDecoderPositions& positions) const -> Output {
  const auto memory = remember(encode(source, masks.source, positions.source));
  return decode(target, memory, masks, positions.target);
}

template <ModelScalar T>
auto EncoderDecoder<T>::forward(const Tokens& source, const Tokens& target,
                                const EncoderDecoderMasks& masks,
                                const EncoderDecoderPositions& positions, const Noise& noise,
                                Saved& saved) const -> Output {
  saved.blocks.resize(blocks.size());
  saved.memory = encoder.forward(source, masks.source, {}, positions.source, noise, saved.encoder);
  auto x = input.forward(target, positions.target, noise, saved.input);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    x = blocks[i].forward(std::move(x), saved.memory, masks.target, masks.memory, positions.target,
                          noise, saved.blocks[i]);
  }
  if (norm) x = norm->forward(x, saved.norm);
  return head.forward(std::move(x), input.embedding, saved.head);
}

template <ModelScalar T>
std::vector<AttentionInputs<T>> EncoderDecoder<T>::remember(const Memory& memory) const {
  std::vector<AttentionInputs<T>> all;
  for (const auto& block : blocks) all.push_back(block.cross_attention.memory_inputs(memory));
  return all;
}

template <ModelScalar T>
auto EncoderDecoder<T>::decode(const Tokens& target, const std::vector<AttentionInputs<T>>& memory,
                               const EncoderDecoderMasks& masks, const Positions& positions) const
    -> Output {
  if (memory.size() != blocks.size()) {
    throw_shape_error("EncoderDecoder: memories of ", memory.size(), " blocks, expected ",
                      blocks.size());
  }
  auto x = input.forward(target, positions);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    x = blocks[i].forward(std::move(x), memory[i], masks.target, masks.memory, positions);
  }
  if (norm) x = norm->forward(x);
  return head.forward(x, input.embedding);
}

template <ModelScalar T>
void EncoderDecoder<T>::backward(const Output& grad, const Saved& saved,
                                 EncoderDecoder& gradients) const {
  detail::check_backward("EncoderDecoder", *this, gradients, grad, saved,
                         input.embedding.weight.extent(0));
  auto x =
      head.backward(grad, input.embedding, saved.head, gradients.head, gradients.input.embedding);
  if (norm) x = norm->backward(x, saved.norm, *gradients.norm);
  Memory grad_memory(saved.memory.extents());
  for (std::size_t i = blocks.size(); i-- > 0;) {
    x = blocks[i].backward(std::move(x), saved.blocks[i], gradients.blocks[i], grad_memory);
  }
  input.backward(std::move(x), saved.input, gradients.input);
  encoder.backward(std::move(grad_memory), saved.encoder, gradients.encoder);
}

template <ModelScalar T>
void EncoderDecoder<T>::check_saved(const Saved& saved) const {
  const auto &x = saved.head.input.extents(), &memory = saved.memory.extents();
  const auto& source = saved.encoder.input.embedding.tokens;
  encoder.check_saved(saved.encoder);
  detail::check_saved("EncoderDecoder",
                      memory == Extents<3>{source.extent(0), source.extent(1),
                                           encoder.input.embedding.weight.extent(1)});
  input.check_saved(saved.input, x);
  detail::check_saved_blocks("EncoderDecoder", *this, saved, x, memory);
}

/// The weights of attention in an EncoderDecoder, each (layers, batch, heads, queries, keys).
template <ModelScalar T>
struct EncoderDecoderAttention {
  Tensor<T, 5> source;  // of source tokens to each other, in the encoder
  Tensor<T, 5> target;  // of target tokens to each other, in the decoder
  Tensor<T, 5> memory;  // of target tokens to source tokens
};

/// The weights of all attention of `forward` with the same arguments; computes each block once.
template <ModelScalar T>
EncoderDecoderAttention<T> attention_of(const EncoderDecoder<T>& model, const Tokens& source,
                                        const Tokens& target, const EncoderDecoderMasks& masks = {},
                                        const EncoderDecoderPositions& positions = {}) {
  EncoderDecoderAttention<T> all;
  const Encoder<T>& encoder = model.encoder;
  auto memory = encoder.embedded(source, {}, positions.source);
  all.source = detail::attention_of_blocks(encoder.blocks, memory, masks.source, positions.source);
  if (encoder.norm) memory = encoder.norm->forward(memory);
  auto x = model.input.forward(target, positions.target);
  const std::size_t layers = model.blocks.size();
  for (std::size_t i = 0; i < layers; ++i) {
    const auto& own = model.blocks[i].attention;
    const auto& cross = model.blocks[i].cross_attention;
    x = model.blocks[i].forward_around(
        std::move(x),
        [&](const Tensor<T, 3>& in) {
          detail::put_layer(own.weights(in, in, masks.target, positions.target), i, layers,
                            all.target);
          return own.forward(in, masks.target, positions.target);
        },
        [&](const Tensor<T, 3>& in) {
          detail::put_layer(cross.weights(in, memory, masks.memory), i, layers, all.memory);
          return cross.forward(in, memory, memory, masks.memory);
        });
  }
  return all;
}

HEED_LINKED_LAYER(EncoderDecoder)

}  // namespace heed
