// SPDX-License-Identifier: MIT
#include <heed/layers/layer_norm.hpp>

#include "laws/any_rank.hpp"

namespace heed::test {
namespace {

TEST(LayerNorm, KeepsTheLaws) {
  for (const Index dim : {3, 6, 37}) {
    check_layer_laws([dim](auto scalar) { return LayerNorm<decltype(scalar)>({.dim = dim}); },
                     {2, 3, dim}, {"weight", "bias"});
  }
  check_layer_laws(
      [](auto scalar) { return LayerNorm<decltype(scalar)>({.dim = 5, .bias = false}); }, {1, 2, 5},
      {"weight"});
}

TEST(LayerNorm, BringsRowsToMeanZeroAndVarianceOne) {
  const LayerNorm<double> layer({.dim = 4, .epsilon = 0});
  const auto y = layer.forward(Tensor<double, 3>({1, 1, 4}, {1, 2, 3, 6}));
  double sum = 0, squares = 0;
  for (const double value : y) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum, 0, 1e-15);
  EXPECT_NEAR(squares, 4, 1e-14);
}

TEST(LayerNorm, AConstantRowIsZero) {
  const LayerNorm<float> layer({.dim = 3});
  for (const float value : layer.forward(Tensor<float, 3>({1, 1, 3}, {7, 7, 7})))
    EXPECT_EQ(value, 0);
}

TEST(LayerNorm, TakesRowsOfAnyRank) { expect_any_rank(LayerNorm<float>(37), 37); }

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(LayerNorm<float>({.dim = 3}).forward(Tensor<float, 3>({1, 2, 4})), ShapeError);
  LayerNorm<float> layer(3), gradients(3);
  LayerNorm<float>::Saved saved;
  layer.forward(Tensor<float, 2>({4, 3}), saved);
  EXPECT_THROW(layer.backward(Tensor<float, 2>({5, 3}), saved, gradients), ShapeError);
  EXPECT_THROW(LayerNorm<float>({.dim = 0}), InvalidArgument);
}

}  // namespace
}  // namespace heed::test
