// SPDX-License-Identifier: MIT
#include <heed/layers/feed_forward.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

auto maker(const FeedForwardOptions& options) {
  return [options](auto scalar) {
    Random random(1);
    return FeedForward<decltype(scalar)>(options, random);
  };
}

struct NoisyCall {
  template <class L, class X>
  auto operator()(const L& layer, const X& x) const {
    typename L::Saved saved;
    return layer.forward(x, Noise{7}, saved);
  }
  template <class L, class X>
  auto operator()(const L& layer, const X& x, typename L::Saved& saved) const {
    return layer.forward(x, Noise{7}, saved);
  }
};

TEST(FeedForward, KeepsTheLaws) {
  check_layer_laws(maker({.model_dim = 4, .hidden_dim = 9, .activation = ActivationKind::gelu}),
                   {2, 3, 4}, {"up.weight", "up.bias", "down.weight", "down.bias"});
}

TEST(FeedForward, KeepsTheLawsGated) {
  for (const auto kind : {ActivationKind::silu, ActivationKind::gelu_tanh}) {
    check_layer_laws(
        maker({.model_dim = 4, .hidden_dim = 9, .activation = kind, .gated = true, .bias = false}),
        {2, 3, 4}, {"up.weight", "gate.weight", "down.weight"});
  }
}

TEST(FeedForward, KeepsTheLawsUnderDropout) {
  check_layer_laws(maker({.model_dim = 4,
                          .hidden_dim = 30,
                          .activation = ActivationKind::silu,
                          .gated = true,
                          .dropout = 0.3}),
                   {1, 3, 4},
                   {"up.weight", "up.bias", "gate.weight", "gate.bias", "down.weight", "down.bias"},
                   false, NoisyCall{});
}

TEST(FeedForward, PackedWeightsGiveTheSameBits) {
  auto layer = maker({.model_dim = 6, .hidden_dim = 70, .gated = true})(float{});
  std::mt19937_64 bits(2);
  const auto x = random_tensor<float, 3>({1, 4, 6}, bits);
  const auto plain = layer.forward(x);
  layer.pack();
  EXPECT_TRUE(same_bits(layer.forward(x), plain));
}

}  // namespace
}  // namespace heed::test
