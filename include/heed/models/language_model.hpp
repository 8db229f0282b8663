// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>
#include <heed/models/model_ends.hpp>

namespace heed {

/// A language model's configuration. Its parts are GPT-2's by default, and Llama's by `llama`; the
/// sizes are the caller's.
struct LanguageModelOptions {
  Index vocab_size = 0;
  Index layers = 1;         // blocks
  Index max_length = 1024;  // of learned positions; sessions take it as their default
  bool tied_head = true;    // logits by the table of embeddings
  double init_std = 0.02;   // of the normal distribution that weights start from
  BlockOptions block = {};  // its dropout is that of the embeddings too

  /// Llama's: the given block with rotary positions, RMS norms, SwiGLU and no biases; a head of its
  /// own. norm_epsilon stays that of the block.
  static LanguageModelOptions llama(BlockOptions block = {}) {
    block.positions = PositionKind::rotary;
    block.activation = ActivationKind::silu;
    block.gated = true;
    block.norm = NormKind::rms;
    block.bias = false;
    return {.tied_head = false, .block = block};
  }
};

/// A decoder that predicts the next token: GPT-2 (Radford et al. 2019) or Llama (Touvron et al.
/// 2023), by its options. Tokens (batch, length) to logits (batch, length, vocabulary).
template <ModelScalar T>
struct LanguageModel {
  using Input = Tokens;
  using Output = Tensor<T, 3>;
  struct Saved {
    typename TokenInput<T>::Saved input;
    std::vector<typename SelfAttentionBlock<T>::Saved> blocks;
    typename Norm<T>::Saved norm;
    typename OutputHead<T>::Saved head;
  };

  LanguageModel() = default;
  LanguageModel(const LanguageModel& other);
  LanguageModel(LanguageModel&& other) noexcept;
  LanguageModel& operator=(const LanguageModel& other);
  LanguageModel& operator=(LanguageModel&& other) noexcept;
  ~LanguageModel();
  LanguageModel(const LanguageModelOptions& given, Random& random = detail::expect_random<T>());

  /// The mask is masks::Causal{} unless another is given, as with padding. With padding on the
  /// left, or packed documents, pass `positions_of(…)`: then a text has the logits that it has
  /// alone. Throws InvalidArgument for a token outside the vocabulary, ShapeError for a mask or
  /// positions of other tokens, and for learned positions from max_length on.
  Output forward(const Tokens& tokens, const Mask& mask = masks::Causal{},
                 const Positions& positions = {}) const;
  Output forward(const Tokens& tokens, const std::same_as<Positions> auto& positions) const {
    return forward(tokens, masks::Causal{}, positions);
  }
  template <class X, class... More>
  Output forward(const X&, const More&...) const
      requires(!std::is_convertible_v<const X&, Tokens>) {
    return detail::expect_tokens<X>(), Output();
  }
  Output forward(const Tokens& tokens, const Mask& mask, const Noise& noise, Saved& saved) const {
    return forward(tokens, mask, {}, noise, saved);
  }
  Output forward(const Tokens& tokens, const Mask& mask, const Positions& positions,
                 const Noise& noise, Saved& saved) const;
  Output forward(const Tokens& tokens, const Mask& mask, Saved& saved) const {
    return forward(tokens, mask, Noise{}, saved);
  }
  Output forward(const Tokens& tokens, Saved& saved) const {
    return forward(tokens, masks::Causal{}, saved);
  }

  void backward(const Output& grad, const Saved& saved, LanguageModel& gradients) const;
  template <class... More>
  void backward(const Saved&, const More&...) const {
    detail::expect_gradient_first<Output, More...>();
  }
  /// Throws ShapeError, or InvalidArgument for a token outside the vocabulary, unless `saved` can
  /// be from a forward pass of this model.
  void check_saved(const Saved& saved) const;

  /// Lays weights out for inference; see Linear::pack.
  void pack();

  static auto members(auto& model) {
    return Members{member("", model.input), member("blocks", model.blocks),
                   member("norm", model.norm), member("head", model.head)};
  }

  LanguageModelOptions options;
  TokenInput<T> input;
  std::vector<SelfAttentionBlock<T>> blocks;
  std::optional<Norm<T>> norm;
  OutputHead<T> head;

 private:
  /// As GPT-2 starts: weights normal, smaller by √(2 · blocks) where they end in a residual sum,
  /// and biases 0.
  void initialize(Random& random);
};

// Defaulted here, and not in the class, so that heed::compiled has their code.
template <ModelScalar T>
LanguageModel<T>::LanguageModel(const LanguageModel& other) = default;
template <ModelScalar T>
LanguageModel<T>::LanguageModel(LanguageModel&& other) noexcept = default;
template <ModelScalar T>
LanguageModel<T>& LanguageModel<T>::operator=(const LanguageModel& other) = default;
template <ModelScalar T>
LanguageModel<T>& LanguageModel<T>::operator=(LanguageModel&& other) noexcept = default;
template <ModelScalar T>
LanguageModel<T>::~LanguageModel() = default;

template <ModelScalar T>
LanguageModel<T>::LanguageModel(const LanguageModelOptions& given, Random& random)
    : options(given),
      input({.vocab_size = given.vocab_size,
             .model_dim = given.block.model_dim,
             .positions = given.block.positions,
             .max_length = given.max_length,
             .init_std = given.init_std,
             .dropout = given.block.dropout},
            random) {
  const BlockOptions& block = options.block;
  detail::check_sizes("LanguageModel", options.layers, options.max_length);
  for (Index i = 0; i < options.layers; ++i) blocks.emplace_back(block, random);
  if (block.norm_before) norm.emplace(detail::norm_options(block));
  head = OutputHead<T>(block.model_dim, options.vocab_size, options.tied_head, random);
  initialize(random);
}

template <ModelScalar T>
auto LanguageModel<T>::forward(const Tokens& tokens, const Mask& mask,
                               const Positions& positions) const -> Output {
  auto x = input.forward(tokens, positions);
  for (const auto& block : blocks) x = block.forward(std::move(x), mask, positions);
  if (norm) x = norm->forward(x);
  return head.forward(x, input.embedding);
}

template <ModelScalar T>
auto LanguageModel<T>::forward(const Tokens& tokens, const Mask& mask, const Positions& positions,
                               const Noise& noise, Saved& saved) const -> Output {
  saved.blocks.resize(blocks.size());
  auto x = input.forward(tokens, positions, noise, saved.input);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    x = blocks[i].forward(std::move(x), mask, positions, noise, saved.blocks[i]);
  }
  if (norm) x = norm->forward(x, saved.norm);
  return head.forward(std::move(x), input.embedding, saved.head);
}

template <ModelScalar T>
void LanguageModel<T>::backward(const Output& grad, const Saved& saved,
                                LanguageModel& gradients) const {
  detail::check_backward("LanguageModel", *this, gradients, grad, saved,
                         input.embedding.weight.extent(0));
  auto x =
      head.backward(grad, input.embedding, saved.head, gradients.head, gradients.input.embedding);
  if (norm) x = norm->backward(x, saved.norm, *gradients.norm);
  for (std::size_t i = blocks.size(); i-- > 0;) {
    x = blocks[i].backward(std::move(x), saved.blocks[i], gradients.blocks[i]);
  }
  input.backward(std::move(x), saved.input, gradients.input);
}

template <ModelScalar T>
void LanguageModel<T>::check_saved(const Saved& saved) const {
  const auto& x = saved.head.input.extents();
  input.check_saved(saved.input, x);
  detail::check_saved_blocks("LanguageModel", *this, saved, x);
}

template <ModelScalar T>
void LanguageModel<T>::pack() {
  for (auto& block : blocks) block.pack();
  head.pack(input.embedding);
}

template <ModelScalar T>
void LanguageModel<T>::initialize(Random& random) {
  const double residual =
      1 / std::sqrt(2 * static_cast<double>(std::max<Index>(1, options.layers)));
  for (auto& block : blocks) {
    for_each_parameter(
        [&](std::string_view name, auto& parameter) {
          if (name.find("norm") != name.npos) return;
          const bool ends = name == "attention.out.weight" || name == "feed_forward.down.weight";
          const double deviation = options.init_std * (ends ? residual : 1);
          if (parameter.rank() != 2) return parameter.fill(T{0});
          detail::WeightDraws::fill(parameter, random, [&] { return deviation * random.normal(); });
        },
        block);
  }
  head.initialize(options.init_std, random);
}

/// The weights of attention in one block: how much each token attends to each other, (batch, heads,
/// tokens, tokens). For inspection; computes the blocks before it. Throws ShapeError for a layer
/// that does not exist.
template <ModelScalar T>
Tensor<T, 4> attention_of(const LanguageModel<T>& model, const Tokens& tokens, const Mask& mask,
                          Index layer, const Positions& positions = {}) {
  return detail::attention_of_block(model.blocks, model.input.forward(tokens, positions), mask,
                                    layer, positions);
}

/// The weights of attention in all blocks, (layers, batch, heads, tokens, tokens); computes each
/// block once.
template <ModelScalar T>
Tensor<T, 5> attention_of(const LanguageModel<T>& model, const Tokens& tokens,
                          const Mask& mask = masks::Causal{}, const Positions& positions = {}) {
  auto x = model.input.forward(tokens, positions);
  return detail::attention_of_blocks(model.blocks, x, mask, positions);
}

HEED_LINKED_LAYER(LanguageModel)

}  // namespace heed
