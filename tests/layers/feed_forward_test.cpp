// SPDX-License-Identifier: MIT
#include <heed/layers/feed_forward.hpp>
#include <heed/tensor/copy.hpp>

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

/// A pass in mixed precision step by step, every factor a float. The gradient of the last row is 0.
struct ByParts {
  explicit ByParts(const FeedForward<float>& given, const Tensor<float, 2>& input)
      : layer(given), x(input) {
    hidden = layer.activation.forward((layer.gate ? *layer.gate : layer.up).forward(x), slopes);
    if (layer.gate) {
      activated = hidden;
      raised = layer.up.forward(x);
      for (Index i = 0; i < hidden.size(); ++i) hidden.data()[i] *= raised.data()[i];
    }
    y = layer.down.forward(hidden);
  }
  Tensor<float, 2> backward(const Tensor<float, 2>& grad, FeedForward<float>& gradients) const {
    auto of_hidden = layer.down.backward(grad, hidden, gradients.down);
    auto of_raised = of_hidden;
    const Index live = (hidden.extent(0) - 1) * hidden.extent(1);  // the last row is padding
    for (Index i = 0; layer.gate && i < live; ++i) {
      of_raised.data()[i] *= activated.data()[i];
      of_hidden.data()[i] *= raised.data()[i];
    }
    Activation<float> none;
    of_hidden = layer.activation.backward(of_hidden, slopes, none);
    if (!layer.gate) return layer.up.backward(of_hidden, x, gradients.up);
    auto grad_x = layer.up.backward(of_raised, x, gradients.up);
    grad_x += layer.gate->backward(of_hidden, x, *gradients.gate);
    return grad_x;
  }

  const FeedForward<float>& layer;
  Tensor<float, 2> x, hidden, activated, raised, y;
  Activation<float>::Saved slopes;
};

TEST(FeedForward, KeepsWhatIsMultipliedInBfloat16AlikeInAllBits) {
  for (const bool gated : {false, true}) {
    auto layer = maker({.model_dim = 19,
                        .hidden_dim = 83,
                        .activation = ActivationKind::gelu,
                        .gated = gated,
                        .dropout = 0.5})(float{});
    set_products(layer, Products::bfloat16);
    std::mt19937_64 bits(4);
    auto x = random_tensor<float, 2>({131, 19}, bits);
    auto grad = random_tensor<float, 2>({131, 19}, bits);
    for (Index i = 0; i < 19; ++i) grad(130, i) = 0, x(130, i) = NAN;  // padding
    const ByParts parts(layer, x);
    FeedForward<float>::Saved saved;
    EXPECT_TRUE(same_bits(layer.forward(x, saved), parts.y)) << gated;
    EXPECT_TRUE(saved.narrow && saved.down.input.empty());
    auto expected = zeros_like(layer), gradients = zeros_like(layer);
    const auto grad_x = parts.backward(grad, expected);
    EXPECT_TRUE(same_bits(layer.backward(grad, saved, gradients), grad_x)) << gated;
    for_each_parameter(
        [&](std::string_view name, const auto& found, const auto& wanted) {
          EXPECT_TRUE(same_bits(found, wanted)) << name << gated;
        },
        std::as_const(gradients), std::as_const(expected));

    FeedForward<float>::Saved noisy;
    layer.forward(x, Noise{7}, noisy);
    EXPECT_FALSE(noisy.narrow) << "what is dropped comes after the activation";
    layer.forward(x, noisy);
    EXPECT_TRUE(noisy.narrow) << "the same memory, used again";
    layer.forward(x, Noise{7}, noisy);
    EXPECT_FALSE(noisy.narrow);
    EXPECT_NO_THROW(layer.backward(grad, noisy, gradients));
  }
}

TEST(FeedForward, AnotherKindOfProductsBetweenBothPasses) {
  auto layer = maker({.model_dim = 8, .hidden_dim = 40})(float{});
  std::mt19937_64 bits(6);
  const auto x = random_tensor<float, 2>({5, 8}, bits),
             grad = random_tensor<float, 2>({5, 8}, bits);
  set_products(layer, Products::bfloat16);
  FeedForward<float>::Saved saved;
  layer.forward(x, saved);
  set_products(layer, Products::exact);
  auto gradients = zeros_like(layer), expected = zeros_like(layer);
  layer.backward(grad, saved, gradients);
  Tensor<float, 2> input(saved.narrow->extents());
  copy(*saved.narrow, input);
  layer.down.backward(grad, input, expected.down);
  EXPECT_TRUE(same_bits(gradients.down.weight, expected.down.weight));
  saved.narrow = Tensor<bfloat16, 2>({4, 40});
  EXPECT_THROW(layer.backward(grad, saved, gradients), ShapeError);
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
