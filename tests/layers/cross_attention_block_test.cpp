// SPDX-License-Identifier: MIT
#include <heed/layers/blocks.hpp>

#include <heed/masks.hpp>

#include "laws/layer_laws.hpp"
#include "support/attention_calls.hpp"

namespace heed::test {
namespace {

/// The block on the first tokens with the others as its memory.
template <class T>
struct WithMemory {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  using Saved = typename CrossAttentionBlock<T>::Saved;
  static constexpr Index targets = 3;

  Output forward(const Input& both, const Mask& memory_mask) const {
    return block.forward(tokens_of(both, 0, targets), tokens_of(both, targets, both.extent(1)),
                         masks::Causal{}, memory_mask);
  }
  Output forward(const Input& both, const Mask& memory_mask, Saved& saved) const {
    return block.forward(tokens_of(both, 0, targets), tokens_of(both, targets, both.extent(1)),
                         masks::Causal{}, memory_mask, saved);
  }
  Input backward(const Output& grad, const Saved& saved, WithMemory& gradients) const {
    Input grad_memory(saved.cross_attention.key->extents());
    const auto grad_x = block.backward(grad, saved, gradients.block, grad_memory);
    return side_by_side(grad_x, grad_memory);
  }
  static auto members(auto& layer) { return std::tuple{member("", layer.block)}; }

  CrossAttentionBlock<T> block;
};

TEST(CrossAttentionBlock, KeepsTheLaws) {
  for (const bool before : {true, false}) {
    check_layer_laws(
        [before](auto scalar) {
          using T = decltype(scalar);
          Random random(1);
          return WithMemory<T>{CrossAttentionBlock<T>({.model_dim = 4,
                                                       .heads = 2,
                                                       .hidden_dim = 5,
                                                       .activation = ActivationKind::silu,
                                                       .norm_before = before},
                                                      random)};
        },
        {2, 3 + 4, 4}, {"attention_norm.weight",        "attention_norm.bias",
                        "attention.query.weight",       "attention.query.bias",
                        "attention.key.weight",         "attention.key.bias",
                        "attention.value.weight",       "attention.value.bias",
                        "attention.out.weight",         "attention.out.bias",
                        "cross_attention_norm.weight",  "cross_attention_norm.bias",
                        "cross_attention.query.weight", "cross_attention.query.bias",
                        "cross_attention.key.weight",   "cross_attention.key.bias",
                        "cross_attention.value.weight", "cross_attention.value.bias",
                        "cross_attention.out.weight",   "cross_attention.out.bias",
                        "feed_forward_norm.weight",     "feed_forward_norm.bias",
                        "feed_forward.up.weight",       "feed_forward.up.bias",
                        "feed_forward.down.weight",     "feed_forward.down.bias"},
        false, MaskedCall{masks::Padding({4, 2})});
  }
}

}  // namespace
}  // namespace heed::test
