// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/block_options.hpp>
#include <heed/layers/feed_forward.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/residual.hpp>
#include <heed/masks/mask.hpp>

namespace heed {

/// A decoder's block beside an encoder: attention of the tokens over each other, over a memory
/// (batch, memory tokens, model_dim), then a feed-forward part. The memory's mask sees token i at
/// position i, however many tokens there are on either side.
template <Scalar T>
struct CrossAttentionBlock {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    typename Residual<T>::Saved attention_residual, cross_residual, feed_forward_residual;
    typename MultiHeadAttention<T>::Saved attention, cross_attention;
    typename FeedForward<T>::Saved feed_forward;
  };

  CrossAttentionBlock() = default;
  /// Positions (rotary, or biases) act in the tokens' own attention, not in that over the memory.
  CrossAttentionBlock(const BlockOptions& options, Random& random)
      : attention_residual(residual(options, random)),
        attention(detail::attention_options(options), random),
        cross_residual(residual(options, random)),
        cross_attention(cross_options(options), random),
        feed_forward_residual(residual(options, random)),
        feed_forward(detail::feed_forward_options(options), random) {}

  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 const Positions& positions = {}) const {
    return forward(std::move(x), cross_attention.memory_inputs(memory), mask, memory_mask,
                   positions);
  }
  /// The same over keys and values that cross_attention.memory_inputs gave once.
  Output forward(Input x, const AttentionInputs<T>& memory, const Mask& mask,
                 const Mask& memory_mask, const Positions& positions = {}) const {
    return forward_around(
        std::move(x), [&](const Input& in) { return attention.forward(in, mask, positions); },
        [&](const Input& in) { return cross_attention.forward(in, memory, memory_mask); });
  }
  /// The block around other ways to attend, `attend(tokens)` to each other, in a cache, say, and
  /// `attend_memory(tokens)`.
  template <class Attend, class AttendMemory>
  Output forward_around(Input x, const Attend& attend, const AttendMemory& attend_memory) const {
    x = attention_residual.forward(std::move(x), attend);
    x = cross_residual.forward(std::move(x), attend_memory);
    return feed_forward_residual.forward(std::move(x),
                                         [&](const Input& in) { return feed_forward.forward(in); });
  }
  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 const Noise& noise, Saved& saved) const {
    return forward(std::move(x), memory, mask, memory_mask, {}, noise, saved);
  }
  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 const Positions& positions, const Noise& noise, Saved& saved) const {
    x = attention_residual.forward(std::move(x), noise, saved.attention_residual, [&](Input in) {
      return attention.forward(std::move(in), mask, positions, noise, saved.attention);
    });
    x = cross_residual.forward(std::move(x), noise, saved.cross_residual, [&](Input in) {
      return cross_attention.forward(std::move(in), memory, memory, memory_mask, noise,
                                     saved.cross_attention);
    });
    return feed_forward_residual.forward(
        std::move(x), noise, saved.feed_forward_residual,
        [&](Input in) { return feed_forward.forward(std::move(in), noise, saved.feed_forward); });
  }
  Output forward(Input x, const Input& memory, const Mask& mask, const Mask& memory_mask,
                 Saved& saved) const {
    return forward(std::move(x), memory, mask, memory_mask, Noise{}, saved);
  }

  /// Adds to grad_memory, which all blocks of a decoder share.
  Input backward(Output grad, const Saved& saved, CrossAttentionBlock& gradients,
                 Input& grad_memory) const {
    grad = feed_forward_residual.backward(std::move(grad), saved.feed_forward_residual,
                                          gradients.feed_forward_residual, [&](const Output& g) {
                                            return feed_forward.backward(g, saved.feed_forward,
                                                                         gradients.feed_forward);
                                          });
    grad = cross_residual.backward(
        std::move(grad), saved.cross_residual, gradients.cross_residual, [&](const Output& g) {
          return cross_attention.backward(g, saved.cross_attention, gradients.cross_attention,
                                          grad_memory, grad_memory);
        });
    return attention_residual.backward(std::move(grad), saved.attention_residual,
                                       gradients.attention_residual, [&](const Output& g) {
                                         return attention.backward(g, saved.attention,
                                                                   gradients.attention);
                                       });
  }

  void pack() {
    attention.pack();
    cross_attention.pack();
    feed_forward.pack();
  }

  static auto members(auto& block) {
    return std::tuple{member("attention_norm", block.attention_residual),
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

 private:
  static Residual<T> residual(const BlockOptions& options, Random& random) {
    return {detail::norm_options(options), options.norm_before, options.dropout, random};
  }
  static MultiHeadAttentionOptions cross_options(const BlockOptions& options) {
    auto cross = detail::attention_options(options);
    cross.rotary.reset();
    cross.relative_reach = 0;
    cross.alibi = false;
    cross.fused = false;
    cross.top_left = true;
    return cross;
  }
};

}  // namespace heed
