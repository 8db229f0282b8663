// SPDX-License-Identifier: MIT
#include <heed/layers/feed_forward.hpp>

#include "laws/any_rank.hpp"

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

TEST(FeedForward, TakesRowsOfAnyRank) {
  for (const bool gated : {false, true}) {
    auto layer = maker({.model_dim = 11, .hidden_dim = 37, .gated = gated})(float{});
    expect_any_rank(layer, 11);
    layer.pack();
    expect_any_rank(layer, 11);
  }
}

TEST(FeedForward, RefusesAGateOfAnotherWidth) {
  auto layer = maker({.model_dim = 8, .hidden_dim = 40, .gated = true})(float{});
  layer.up.weight = Tensor<float, 2>({30, 8});
  layer.up.bias = Tensor<float, 1>({30});
  const Tensor<float, 3> x({1, 4, 8});
  FeedForward<float>::Saved saved;
  EXPECT_THROW(layer.forward(x), ShapeError);
  EXPECT_THROW(layer.forward(x, saved), ShapeError);
  layer.pack();
  EXPECT_THROW(layer.forward(x), ShapeError);
}

TEST(FeedForward, PackedWeightsGiveTheSameBits) {
  auto layer = maker({.model_dim = 6, .hidden_dim = 70, .gated = true})(float{});
  std::mt19937_64 bits(2);
  const auto x = random_tensor<float, 3>({1, 4, 6}, bits);
  const auto plain = layer.forward(x);
  layer.pack();
  EXPECT_TRUE(same_bits(layer.forward(x), plain));
}

TEST(FeedForward, ManyRowsInTrainingHaveTheBitsOfEachAlone) {
  const Index threads = thread_count();
  set_thread_count(3);
  const auto layer = maker({.model_dim = 16, .hidden_dim = 300, .gated = true})(float{});
  std::mt19937_64 bits(3);
  const auto x = random_tensor<float, 3>({2, 200, 16}, bits);
  FeedForward<float>::Saved saved;
  const auto y = layer.forward(x, saved);
  EXPECT_TRUE(same_bits(y, layer.forward(x)));
  const auto grad = random_tensor<float, 3>({2, 200, 16}, bits);
  auto gradients = zeros_like(layer);
  const auto grad_x = layer.backward(grad, saved, gradients);
  for (const Index token : {0, 1, 63, 199}) {
    const auto row = [&](const Tensor<float, 3>& all) {
      return Tensor<float, 3>::copy_of(all.view().slice(0, 1, 2).slice(1, token, token + 1));
    };
    FeedForward<float>::Saved alone;
    EXPECT_TRUE(same_bits(layer.forward(row(x), alone), row(y))) << token;
    auto unused = zeros_like(layer);
    EXPECT_TRUE(same_bits(layer.backward(row(grad), alone, unused), row(grad_x))) << token;
  }
  set_thread_count(threads);
}

TEST(Activation, KeepsTheLaws) {
  for (const auto kind : {ActivationKind::relu, ActivationKind::gelu, ActivationKind::gelu_tanh,
                          ActivationKind::silu}) {
    SCOPED_TRACE(static_cast<int>(kind));
    check_layer_laws([kind](auto scalar) { return Activation<decltype(scalar)>(kind); }, {2, 3, 19},
                     {});
  }
}

TEST(Activation, TakesRowsOfAnyRank) {
  const Activation<float> layer(ActivationKind::silu);
  expect_any_rank(layer, 37);
  Activation<float>::Saved saved;
  layer.forward(Tensor<float, 2>({4, 3}), saved);
  auto gradients = layer;
  EXPECT_THROW(layer.backward(Tensor<float, 2>({5, 3}), saved, gradients), ShapeError);
}

TEST(Activation, KnownValues) {
  const auto at_one = [](ActivationKind kind) {
    return Activation<double>(kind).forward(Tensor<double, 3>({1, 1, 1}, {1}))(0, 0, 0);
  };
  EXPECT_EQ(at_one(ActivationKind::relu), 1);
  EXPECT_NEAR(at_one(ActivationKind::gelu), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(at_one(ActivationKind::gelu_tanh), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(at_one(ActivationKind::silu), 0.7310585786300049, 1e-15);
}

}  // namespace
}  // namespace heed::test
