// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/feed_forward.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/rotary.hpp>
#include <heed/masks/mask.hpp>
#include <heed/tensor/arithmetic.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// The parts of a transformer block, for a block alone and for every block of a model. The kinds of
/// norm, activation and positions are GPT-2's by default.
struct BlockOptions {
  Index model_dim = 0;  // required
  Index heads = 1;
  Index kv_heads = 0;    // 0: as many as heads
  Index head_dim = 0;    // 0: model_dim / heads
  Index hidden_dim = 0;  // 0: 4 · model_dim
  ActivationKind activation = ActivationKind::gelu_tanh;
  bool gated = false;  // SwiGLU with silu, GeGLU with gelu
  NormKind norm = NormKind::layer;
  double norm_epsilon = 1e-5;  // of query_key_norm too; models with RMS norms often have 1e-6
  bool norm_before = true;     // before each part; false: after it, and after the residual sum
  bool bias = true;            // of projections, feed-forward parts and layer norms
  std::optional<bool> query_key_value_bias = {};  // of the projections to these; none: as bias
  bool fused_projection = false;                  // one matrix for queries, keys and values
  std::optional<NormKind> query_key_norm = {};    // of each head's queries and keys
  /// Learned and sinusoidal positions are added by a model before its first block, not by a block.
  PositionKind positions = PositionKind::learned;
  RotaryOptions rotary = {};  // where positions are rotary
  double softcap = 0;         // of scores, sinks and window: see MultiHeadAttentionOptions
  bool sinks = false;
  Index window = 0;              // not of cross-attention
  Index relative_reach = 128;    // where positions are relative: longer distances count as this one
  double dropout = 0;            // after attention, inside and after the feed-forward part
  double attention_dropout = 0;  // of the weights
};

namespace detail {

inline MultiHeadAttentionOptions attention_options(const BlockOptions& options) {
  return {.model_dim = options.model_dim,
          .heads = options.heads,
          .kv_heads = options.kv_heads,
          .head_dim = options.head_dim,
          .bias = options.query_key_value_bias.value_or(options.bias),
          .output_bias = options.bias,
          .fused = options.fused_projection,
          .query_key_norm = options.query_key_norm,
          .norm_epsilon = options.norm_epsilon,
          .softcap = options.softcap,
          .sinks = options.sinks,
          .window = options.window,
          .positions = options.positions,
          .rotary = options.rotary,
          .relative_reach = options.relative_reach,
          .dropout = options.attention_dropout};
}
/// Attention over a memory: positions act in the tokens' own attention alone.
inline MultiHeadAttentionOptions cross_attention_options(const BlockOptions& options) {
  auto cross = attention_options(options);
  cross.positions = PositionKind::none;
  cross.window = 0;
  cross.fused = false;
  cross.top_left = true;
  return cross;
}
inline FeedForwardOptions feed_forward_options(const BlockOptions& options) {
  return {.model_dim = options.model_dim,
          .hidden_dim = options.hidden_dim,
          .activation = options.activation,
          .gated = options.gated,
          .bias = options.bias,
          .dropout = options.dropout};
}
inline NormOptions norm_options(const BlockOptions& options) {
  return {options.norm, options.model_dim, options.norm_epsilon, options.bias};
}

}  // namespace detail

/// The residual connection around a part of a block: x + dropout(part(norm(x))) with the norm
/// before (GPT-2, Llama; Xiong et al. 2020), or norm(x + dropout(part(x))) with the norm after (the
/// original transformer, BERT).
template <ModelScalar T>
struct Residual {
  struct Saved {
    typename Norm<T>::Saved norm;
    typename Dropout<T>::Saved dropout;
  };

  Residual() = default;
  Residual(const BlockOptions& options, Random& random)
      : norm(detail::norm_options(options)),
        dropout(options.dropout, random),
        norm_before(options.norm_before) {}

  /// `part` maps a tensor to one of the same extents.
  template <class Part>
  Tensor<T, 3> forward(Tensor<T, 3> x, const Part& part) const {
    if (norm_before) {
      x += part(norm.forward(x));
      return x;
    }
    auto sum = part(x);
    return norm.forward(sum += x);
  }
  template <class Part>
  Tensor<T, 3> forward(Tensor<T, 3> x, const Noise& noise, Saved& saved, const Part& part) const {
    if (norm_before) {
      x += dropout.forward(part(norm.forward(x, saved.norm)), noise, saved.dropout);
      return x;
    }
    auto sum = dropout.forward(part(x), noise, saved.dropout);
    return norm.forward(sum += x, saved.norm);
  }
  /// `forward` around layer.forward(x, how..., noise, saved_layer).
  template <class Layer, class... How>
  Tensor<T, 3> forward(Tensor<T, 3> x, const Noise& noise, Saved& saved, const Layer& layer,
                       typename Layer::Saved& saved_layer, const How&... how) const {
    return forward(std::move(x), noise, saved, [&](Tensor<T, 3> in) {
      return layer.forward(std::move(in), how..., noise, saved_layer);
    });
  }

  /// `part` maps the gradient of the part's output to that of its input.
  template <class Part>
  Tensor<T, 3> backward(Tensor<T, 3> grad, const Saved& saved, Residual& gradients,
                        const Part& part) const {
    const auto through_part = [&] {
      if (!dropout.drops(saved.dropout)) return part(grad);
      return part(dropout.backward(grad, saved.dropout, gradients.dropout));
    };
    if (norm_before) return norm.backward(through_part(), saved.norm, gradients.norm, grad);
    grad = norm.backward(grad, saved.norm, gradients.norm);
    grad += through_part();
    return grad;
  }
  /// Around a layer whose backward adds to `others`, the gradients of other inputs.
  template <class Layer, class... Others>
  Tensor<T, 3> backward(Tensor<T, 3> grad, const Saved& saved, Residual& gradients,
                        const Layer& layer, const typename Layer::Saved& saved_layer,
                        Layer& layer_gradients, Others&... others) const {
    return backward(std::move(grad), saved, gradients, [&](const Tensor<T, 3>& g) {
      return layer.backward(g, saved_layer, layer_gradients, others...);
    });
  }

  static auto members(auto& layer) {
    return Members{member("", layer.norm), member("", layer.dropout)};
  }

  Norm<T> norm;
  Dropout<T> dropout;
  bool norm_before = true;
};

/// Attention of the tokens over each other, then a feed-forward part for each. Under a causal mask
/// it is the block of a language model, under a padding mask an encoder's; only the mask differs.
///
/// forward: x and the result are (batch, tokens, model_dim); without a mask every token sees every
/// token. With `saved` it keeps what backward reads, and with a `noise` that has a seed it drops.
/// backward: returns the gradient of x, and adds those of the weights to `gradients`, a block like
/// this one (zeros_like). Rotary positions are those of `positions`. Both throw ShapeError for what
/// does not fit, and backward InvalidArgument for gradients that are this block.
template <ModelScalar T>
struct SelfAttentionBlock {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    typename Residual<T>::Saved attention_residual, feed_forward_residual;
    typename MultiHeadAttention<T>::Saved attention;
    typename FeedForward<T>::Saved feed_forward;
  };

  SelfAttentionBlock() = default;
  /// Throws InvalidArgument for options that make no block.
  SelfAttentionBlock(const BlockOptions& options, Random& random = detail::expect_random<T>())
      : attention_residual(options, random),
        attention(detail::attention_options(options), random),
        feed_forward_residual(options, random),
        feed_forward(detail::feed_forward_options(options), random) {}
  SelfAttentionBlock(Index model_dim, Index heads, Random& random = detail::expect_random<T>())
      : SelfAttentionBlock({.model_dim = model_dim, .heads = heads}, random) {}

  Output forward(Input x, const Mask& mask = masks::Full{}, const Positions& positions = {}) const;
  template <class X, class... More>
  Output forward(const X&, const More&...) const requires(!std::is_convertible_v<const X&, Input>) {
    detail::expect_batch<X, Input>();
    return {};
  }
  template <class M, class... More>
  Output forward(const Input&, const M&, const More&...) const
      requires(!std::is_convertible_v<const M&, Mask> &&
               (!std::is_same_v<M, Saved> || sizeof...(More) > 0)) {
    detail::expect_layer_mask<M, Saved>();
    return {};
  }
  /// The block around another way to attend, `attend(tokens)`: with a cache, for example.
  template <class Attend>
  Output forward_around(Input x, const Attend& attend) const {
    x = attention_residual.forward(std::move(x), attend);
    return feed_forward_residual.forward(std::move(x),
                                         [&](const Input& in) { return feed_forward.forward(in); });
  }
  Output forward(Input x, const Mask& mask, Saved& saved) const {
    return forward(std::move(x), mask, Noise{}, saved);
  }
  Output forward(Input x, Saved& saved) const {
    return forward(std::move(x), masks::Full{}, saved);
  }
  Output forward(Input x, const Mask& mask, const Noise& noise, Saved& saved) const {
    return forward(std::move(x), mask, {}, noise, saved);
  }
  Output forward(Input x, const Mask& mask, const Positions& positions, const Noise& noise,
                 Saved& saved) const;

  Input backward(Output grad, const Saved& saved, SelfAttentionBlock& gradients) const;
  template <class... More>
  Input backward(const Saved&, const More&...) const {
    return detail::expect_gradient_first<Input, More...>(), Input();
  }
  /// Throws ShapeError unless `saved` can be from a forward pass over x of these extents.
  void check_saved(const Saved& saved, const Extents<3>& x) const;

  /// Lays the weights out for inference; see Linear::pack.
  void pack() {
    attention.pack();
    feed_forward.pack();
  }

  static auto members(auto& block) {
    return Members{member("attention_norm", block.attention_residual),
                   member("attention", block.attention),
                   member("feed_forward_norm", block.feed_forward_residual),
                   member("feed_forward", block.feed_forward)};
  }

  Residual<T> attention_residual;
  MultiHeadAttention<T> attention;
  Residual<T> feed_forward_residual;
  FeedForward<T> feed_forward;
};

template <ModelScalar T>
auto SelfAttentionBlock<T>::forward(Input x, const Mask& mask, const Positions& positions) const
    -> Output {
  return forward_around(std::move(x),
                        [&](const Input& in) { return attention.forward(in, mask, positions); });
}

template <ModelScalar T>
auto SelfAttentionBlock<T>::forward(Input x, const Mask& mask, const Positions& positions,
                                    const Noise& noise, Saved& saved) const -> Output {
  x = attention_residual.forward(std::move(x), noise, saved.attention_residual, attention,
                                 saved.attention, mask, positions);
  return feed_forward_residual.forward(std::move(x), noise, saved.feed_forward_residual,
                                       feed_forward, saved.feed_forward);
}

template <ModelScalar T>
auto SelfAttentionBlock<T>::backward(Output grad, const Saved& saved,
                                     SelfAttentionBlock& gradients) const -> Input {
  detail::check_gradients(*this, gradients);
  check_saved(saved, grad.extents());
  grad = feed_forward_residual.backward(std::move(grad), saved.feed_forward_residual,
                                        gradients.feed_forward_residual, feed_forward,
                                        saved.feed_forward, gradients.feed_forward);
  return attention_residual.backward(std::move(grad), saved.attention_residual,
                                     gradients.attention_residual, attention, saved.attention,
                                     gradients.attention);
}

template <ModelScalar T>
void SelfAttentionBlock<T>::check_saved(const Saved& saved, const Extents<3>& x) const {
  const Index rows = x[0] * x[1];
  detail::check_gradient("SelfAttentionBlock", x, saved.attention.query.extents());
  attention.check_saved(saved.attention);
  feed_forward.check_saved(saved.feed_forward, rows);
  attention_residual.norm.check_saved(saved.attention_residual.norm, rows);
  feed_forward_residual.norm.check_saved(saved.feed_forward_residual.norm, rows);
}

/// One block by two names. It has no mask of its own: a decoder passes masks::Causal{}.
template <ModelScalar T>
using EncoderBlock = SelfAttentionBlock<T>;
template <ModelScalar T>
using DecoderBlock = SelfAttentionBlock<T>;

namespace detail {

/// The weights of attention in one block, for the input x of the first.
template <ModelScalar T>
Tensor<T, 4> attention_of_block(const std::vector<SelfAttentionBlock<T>>& blocks, Tensor<T, 3> x,
                                const Mask& mask, Index layer, const Positions& positions) {
  if (layer < 0 || layer >= static_cast<Index>(blocks.size())) {
    throw_shape_error("attention_of: layer ", layer, " of ", blocks.size());
  }
  const auto last = static_cast<std::size_t>(layer);
  for (std::size_t i = 0; i < last; ++i) {
    x = blocks[i].forward(std::move(x), mask, positions);
  }
  const auto& residual = blocks[last].attention_residual;
  if (residual.norm_before) x = residual.norm.forward(x);
  return blocks[last].attention.weights(x, x, mask, positions);
}

/// Puts the weights of one block, (batch, heads, queries, keys), into those of all `layers`.
template <ModelScalar T>
void put_layer(const Tensor<T, 4>& weights, std::size_t layer, std::size_t layers,
               Tensor<T, 5>& all) {
  if (layer == 0) {
    all = Tensor<T, 5>({static_cast<Index>(layers), weights.extent(0), weights.extent(1),
                        weights.extent(2), weights.extent(3)});
  }
  T* to = all.data() + static_cast<Index>(layer) * weights.size();
  for (Index i = 0; i < weights.size(); ++i) to[i] = weights.data()[i];
}

/// The weights of attention in all blocks, (layers, batch, heads, tokens, tokens), each block
/// computed once. x, the input of the first, becomes the output of the last.
template <ModelScalar T>
Tensor<T, 5> attention_of_blocks(const std::vector<SelfAttentionBlock<T>>& blocks, Tensor<T, 3>& x,
                                 const Mask& mask, const Positions& positions) {
  Tensor<T, 5> all;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& attention = blocks[i].attention;
    x = blocks[i].forward_around(std::move(x), [&](const Tensor<T, 3>& in) {
      put_layer(attention.weights(in, in, mask, positions), i, blocks.size(), all);
      return attention.forward(in, mask, positions);
    });
  }
  return all;
}

}  // namespace detail

/// A decoder's block beside an encoder: attention of the tokens over each other, then over a memory
/// (batch, memory tokens, model_dim), then a feed-forward part. In the memory's mask, query i and
/// key i are at position i, however many queries and keys there are. `positions` act in the first
/// attention alone. forward and backward are those of SelfAttentionBlock otherwise.
template <ModelScalar T>
struct CrossAttentionBlock {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    typename Residual<T>::Saved attention_residual, cross_residual, feed_forward_residual;
    typename MultiHeadAttention<T>::Saved attention, cross_attention;
    typename FeedForward<T>::Saved feed_forward;
  };

  CrossAttentionBlock() = default;
  /// Throws InvalidArgument for options that make no block.
  CrossAttentionBlock(const BlockOptions& options, Random& random = detail::expect_random<T>())
      : attention_residual(options, random),
        attention(detail::attention_options(options), random),
        cross_residual(options, random),
        cross_attention(detail::cross_attention_options(options), random),
        feed_forward_residual(options, random),
        feed_forward(detail::feed_forward_options(options), random) {}
  CrossAttentionBlock(Index model_dim, Index heads, Random& random = detail::expect_random<T>())
      : CrossAttentionBlock({.model_dim = model_dim, .heads = heads}, random) {}

  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 const Positions& positions = {}) const {
    return forward(std::move(x), cross_attention.memory_inputs(memory), mask, memory_mask,
                   positions);
  }
  /// The same over keys and values that cross_attention.memory_inputs computed once.
  Output forward(Input x, const AttentionInputs<T>& memory, const Mask& mask,
                 const Mask& memory_mask, const Positions& positions = {}) const {
    return forward_around(
        std::move(x), [&](const Input& in) { return attention.forward(in, mask, positions); },
        [&](const Input& in) { return cross_attention.forward(in, memory, memory_mask); });
  }
  /// The block around other ways to attend: `attend(tokens)` to each other, with a cache, for
  /// example, and `attend_memory(tokens)`.
  template <class Attend, class AttendMemory>
  Output forward_around(Input x, const Attend& attend, const AttendMemory& attend_memory) const {
    x = attention_residual.forward(std::move(x), attend);
    x = cross_residual.forward(std::move(x), attend_memory);
    return feed_forward_residual.forward(std::move(x),
                                         [&](const Input& in) { return feed_forward.forward(in); });
  }
  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 Saved& saved) const {
    return forward(std::move(x), memory, mask, memory_mask, Noise{}, saved);
  }
  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 const Noise& noise, Saved& saved) const {
    return forward(std::move(x), memory, mask, memory_mask, {}, noise, saved);
  }
  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 const Positions& positions, const Noise& noise, Saved& saved) const {
    x = attention_residual.forward(std::move(x), noise, saved.attention_residual, attention,
                                   saved.attention, mask, positions);
    x = cross_residual.forward(std::move(x), noise, saved.cross_residual, cross_attention,
                               saved.cross_attention, memory, memory, memory_mask);
    return feed_forward_residual.forward(std::move(x), noise, saved.feed_forward_residual,
                                         feed_forward, saved.feed_forward);
  }

  /// Adds the gradient of the memory to grad_memory, which has the memory's extents, is zero before
  /// the last block, and serves all blocks of a decoder.
  Input backward(Output grad, const Saved& saved, CrossAttentionBlock& gradients,
                 Input& grad_memory) const {
    detail::check_gradients(*this, gradients);
    check_saved(saved, grad.extents(), grad_memory.extents());
    grad = feed_forward_residual.backward(std::move(grad), saved.feed_forward_residual,
                                          gradients.feed_forward_residual, feed_forward,
                                          saved.feed_forward, gradients.feed_forward);
    grad = cross_residual.backward(std::move(grad), saved.cross_residual, gradients.cross_residual,
                                   cross_attention, saved.cross_attention,
                                   gradients.cross_attention, grad_memory, grad_memory);
    return attention_residual.backward(std::move(grad), saved.attention_residual,
                                       gradients.attention_residual, attention, saved.attention,
                                       gradients.attention);
  }

  /// Throws ShapeError unless `saved` can be from a forward pass over x and a memory of these
  /// extents.
  void check_saved(const Saved& saved, const Extents<3>& x, const Extents<3>& memory) const {
    const Index rows = x[0] * x[1];
    const auto& cross = saved.cross_attention;
    detail::check_gradient("CrossAttentionBlock", x, saved.attention.query.extents());
    detail::check_gradient("CrossAttentionBlock", x, cross.query.extents());
    attention.check_saved(saved.attention);
    cross_attention.check_saved(cross);
    detail::check_gradient("CrossAttentionBlock's memory", memory,
                           (cross.key ? *cross.key : cross.query).extents());
    feed_forward.check_saved(saved.feed_forward, rows);
    attention_residual.norm.check_saved(saved.attention_residual.norm, rows);
    cross_residual.norm.check_saved(saved.cross_residual.norm, rows);
    feed_forward_residual.norm.check_saved(saved.feed_forward_residual.norm, rows);
  }

  /// Lays the weights out for inference; see Linear::pack.
  void pack() {
    attention.pack();
    cross_attention.pack();
    feed_forward.pack();
  }

  static auto members(auto& block) {
    return Members{member("attention_norm", block.attention_residual),
                   member("attention", block.attention),
                   member("cross_attention_norm", block.cross_residual),
                   member("cross_attention", block.cross_attention),
                   member("feed_forward_norm", block.feed_forward_residual),
                   member("feed_forward", block.feed_forward)};
  }

  Residual<T> attention_residual;
  MultiHeadAttention<T> attention;
  Residual<T> cross_residual;
  MultiHeadAttention<T> cross_attention;
  Residual<T> feed_forward_residual;
  FeedForward<T> feed_forward;
};

HEED_LINKED_LAYER(Residual)
HEED_LINKED_LAYER(SelfAttentionBlock)
HEED_LINKED_LAYER(CrossAttentionBlock)

}  // namespace heed
