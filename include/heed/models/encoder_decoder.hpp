// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/mask.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/encoder_decoder_options.hpp>
#include <heed/models/output_head.hpp>
#include <heed/models/token_input.hpp>

namespace heed {

/// Who sees whom in an encoder-decoder: source tokens each other, target tokens each other
/// (causal), target tokens the source.
struct EncoderDecoderMasks {
  Mask source;
  Mask target;
  Mask memory;
};

/// Where tokens stand in their texts, as LanguageModel takes it.
struct EncoderDecoderPositions {
  Positions source = {};
  Positions target = {};
};

/// From one sequence to another, as in translation: an encoder reads the source, a decoder predicts
/// the target's next token from its beginning and the encoder's output. Vaswani et al. 2017.
template <Scalar T>
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
  EncoderDecoder(const EncoderDecoderOptions& given, Random& random)
      : options(given),
        encoder(detail::encoder_options(given), random),
        input(detail::target_input_options(given), random) {
    const auto block = detail::block_options(options);
    for (Index i = 0; i < options.decoder_layers; ++i) blocks.emplace_back(block, random);
    if (options.norm_before) norm.emplace(detail::norm_options(block));
    head = OutputHead<T>(options.model_dim, options.target_vocab_size, options.tied_head, random);
  }

  /// Logits (batch, target length, target vocabulary).
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks,
                 const EncoderDecoderPositions& positions = {}) const {
    const auto memory = remember(encode(source, masks.source, positions.source));
    return decode(target, memory, masks, positions.target);
  }
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks,
                 const Noise& noise, Saved& saved) const {
    return forward(source, target, masks, {}, noise, saved);
  }
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks,
                 const EncoderDecoderPositions& positions, const Noise& noise, Saved& saved) const {
    saved.blocks.resize(blocks.size());
    saved.memory =
        encoder.forward(source, masks.source, {}, positions.source, noise, saved.encoder);
    auto x = input.forward(target, positions.target, noise, saved.input);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      x = blocks[i].forward(std::move(x), saved.memory, masks.target, masks.memory,
                            positions.target, noise, saved.blocks[i]);
    }
    if (norm) x = norm->forward(x, saved.norm);
    return head.forward(std::move(x), input.embedding, saved.head);
  }
  Output forward(const Tokens& source, const Tokens& target, const EncoderDecoderMasks& masks,
                 Saved& saved) const {
    return forward(source, target, masks, Noise{}, saved);
  }

  /// The parts of forward, for generation: the source is read once, and so are its keys and values.
  Memory encode(const Tokens& source, const Mask& mask, const Positions& positions = {}) const {
    return encoder.forward(source, mask, {}, positions);
  }
  std::vector<AttentionInputs<T>> remember(const Memory& memory) const {
    std::vector<AttentionInputs<T>> all;
    for (const auto& block : blocks) all.push_back(block.cross_attention.memory_inputs(memory));
    return all;
  }
  Output decode(const Tokens& target, const std::vector<AttentionInputs<T>>& memory,
                const EncoderDecoderMasks& masks, const Positions& positions = {}) const {
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

  void backward(const Output& grad, const Saved& saved, EncoderDecoder& gradients) const {
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

  /// Lays weights out for inference; see Linear::pack.
  void pack() {
    encoder.pack();
    for (auto& block : blocks) block.pack();
    head.pack(input.embedding);
  }

  static auto members(auto& model) {
    return std::tuple{member("encoder", model.encoder), member("", model.input),
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

}  // namespace heed
