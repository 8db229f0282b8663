// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/positions.hpp>
#include <heed/masks/mask.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/language_model.hpp>

namespace heed {

namespace detail {

template <Scalar T>
Tensor<T, 4> attention_of_block(const std::vector<SelfAttentionBlock<T>>& blocks, Tensor<T, 3> x,
                                const Mask& mask, Index layer, const Positions& positions) {
  if (layer < 0 || layer >= static_cast<Index>(blocks.size())) {
    throw_shape_error("attention_of: layer ", layer, " of ", blocks.size());
  }
  const auto last = static_cast<std::size_t>(layer);
  for (std::size_t i = 0; i < last; ++i) {
    x = blocks[i].forward(std::move(x), mask, positions);
  }
  Tensor<T, 4> weights;
  blocks[last].forward_around(std::move(x), [&](const Tensor<T, 3>& in) {
    weights = blocks[last].attention.weights(in, in, mask, positions);
    return in;
  });
  return weights;
}

}  // namespace detail

/// Which tokens each token of a layer looks at: all weights of attention, (batch, heads, tokens,
/// tokens). For looking at; computes the layers before it. Throws ShapeError for a layer that is
/// not there.
template <Scalar T>
Tensor<T, 4> attention_of(const LanguageModel<T>& model, const Tokens& tokens, const Mask& mask,
                          Index layer, const Positions& positions = {}) {
  return detail::attention_of_block(model.blocks, model.input.forward(tokens, positions), mask,
                                    layer, positions);
}
template <Scalar T>
Tensor<T, 4> attention_of(const Encoder<T>& model, const Tokens& tokens, const Mask& mask,
                          Index layer, const Positions& positions = {}) {
  return detail::attention_of_block(model.blocks, model.embedded(tokens, {}, positions), mask,
                                    layer, positions);
}

}  // namespace heed
