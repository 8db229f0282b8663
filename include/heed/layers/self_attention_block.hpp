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

/// Attention of the tokens over each other, then a feed-forward part for each. Under a causal mask
/// it is a decoder's block, under a padding mask an encoder's; the mask is all that tells them
/// apart.
template <Scalar T>
struct SelfAttentionBlock {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    typename Residual<T>::Saved attention_residual, feed_forward_residual;
    typename MultiHeadAttention<T>::Saved attention;
    typename FeedForward<T>::Saved feed_forward;
  };

  SelfAttentionBlock() = default;
  SelfAttentionBlock(const BlockOptions& options, Random& random)
      : attention_residual(detail::norm_options(options), options.norm_before, options.dropout,
                           random),
        attention(detail::attention_options(options), random),
        feed_forward_residual(detail::norm_options(options), options.norm_before, options.dropout,
                              random),
        feed_forward(detail::feed_forward_options(options), random) {}

  Output forward(Input x, const Mask& mask, const Positions& positions = {}) const {
    return forward_around(std::move(x),
                          [&](const Input& in) { return attention.forward(in, mask, positions); });
  }
  /// The block around another way to attend, `attend(tokens)`: to a cache, say.
  template <class Attend>
  Output forward_around(Input x, const Attend& attend) const {
    x = attention_residual.forward(std::move(x), attend);
    return feed_forward_residual.forward(std::move(x),
                                         [&](const Input& in) { return feed_forward.forward(in); });
  }
  Output forward(Input x, const Mask& mask, const Noise& noise, Saved& saved) const {
    return forward(std::move(x), mask, {}, noise, saved);
  }
  Output forward(Input x, const Mask& mask, const Positions& positions, const Noise& noise,
                 Saved& saved) const {
    x = attention_residual.forward(std::move(x), noise, saved.attention_residual, [&](Input in) {
      return attention.forward(std::move(in), mask, positions, noise, saved.attention);
    });
    return feed_forward_residual.forward(
        std::move(x), noise, saved.feed_forward_residual,
        [&](Input in) { return feed_forward.forward(std::move(in), noise, saved.feed_forward); });
  }
  Output forward(Input x, const Mask& mask, Saved& saved) const {
    return forward(std::move(x), mask, Noise{}, saved);
  }

  Input backward(Output grad, const Saved& saved, SelfAttentionBlock& gradients) const {
    grad = feed_forward_residual.backward(std::move(grad), saved.feed_forward_residual,
                                          gradients.feed_forward_residual, [&](const Output& g) {
                                            return feed_forward.backward(g, saved.feed_forward,
                                                                         gradients.feed_forward);
                                          });
    return attention_residual.backward(std::move(grad), saved.attention_residual,
                                       gradients.attention_residual, [&](const Output& g) {
                                         return attention.backward(g, saved.attention,
                                                                   gradients.attention);
                                       });
  }

  void pack() {
    attention.pack();
    feed_forward.pack();
  }

  static auto members(auto& block) {
    return std::tuple{member("attention_norm", block.attention_residual),
                      member("attention", block.attention),
                      member("feed_forward_norm", block.feed_forward_residual),
                      member("feed_forward", block.feed_forward)};
  }

  Residual<T> attention_residual;
  MultiHeadAttention<T> attention;
  Residual<T> feed_forward_residual;
  FeedForward<T> feed_forward;
};

/// The names that say what a block is for.
template <Scalar T>
using EncoderBlock = SelfAttentionBlock<T>;
template <Scalar T>
using DecoderBlock = SelfAttentionBlock<T>;

}  // namespace heed
