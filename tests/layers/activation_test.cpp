// SPDX-License-Identifier: MIT
#include <heed/layers/feed_forward.hpp>

#include "laws/any_rank.hpp"

namespace heed::test {
namespace {

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
