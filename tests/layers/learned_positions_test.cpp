// SPDX-License-Identifier: MIT
#include <heed/layers/embedding.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

TEST(LearnedPositions, KeepsTheLaws) {
  check_layer_laws(
      [](auto scalar) {
        Random random(1);
        return LearnedPositions<decltype(scalar)>({.max_length = 3, .dim = 5}, random);
      },
      {2, 3, 5}, {"weight"}, false);
}

TEST(LearnedPositions, CountsFromTheFirstPosition) {
  Random random(2);
  const LearnedPositions<float> layer({.max_length = 4, .dim = 2}, random);
  const auto y = layer.forward(Tensor<float, 3>({2, 2, 2}), 2);
  EXPECT_EQ(y(1, 0, 1), layer.weight(2, 1));
  EXPECT_EQ(y(0, 1, 0), layer.weight(3, 0));
  LearnedPositions<float>::Saved saved;
  layer.forward(Tensor<float, 3>({1, 1, 2}), saved, 2);
  auto gradients = zeros_like(layer);
  layer.backward(Tensor<float, 3>({1, 1, 2}, {5, 7}), saved, gradients);
  EXPECT_EQ(gradients.weight(2, 0), 5);
  EXPECT_EQ(gradients.weight(2, 1), 7);
  EXPECT_EQ(gradients.weight(0, 0) + gradients.weight(1, 0) + gradients.weight(3, 0), 0);
}

TEST(LearnedPositions, RefusesPositionsPastTheTable) {
  Random random(3);
  const LearnedPositions<float> layer({.max_length = 4, .dim = 2}, random);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 5, 2})), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 2}), 3), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 2}), -1), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 3})), ShapeError);
}

TEST(LearnedPositions, AddsTheRowOfEveryTokensPosition) {
  Random random(2);
  const LearnedPositions<double> layer({.max_length = 4, .dim = 2}, random);
  const Positions positions(Tensor<Index, 2>({2, 3}, {3, 0, 3, 1, 1, 2}));
  LearnedPositions<double>::Saved saved;
  const auto y = layer.forward(Tensor<double, 3>({2, 3, 2}), saved, positions);
  EXPECT_EQ(y(0, 2, 1), layer.weight(3, 1));
  EXPECT_EQ(y(1, 1, 0), layer.weight(1, 0));
  auto gradients = zeros_like(layer);
  Tensor<double, 3> grad({2, 3, 2});
  for (Index i = 0; i < 12; ++i) grad.data()[i] = static_cast<double>(i);
  layer.backward(grad, saved, gradients);
  const double sums[] = {2, 3, 6 + 8, 7 + 9, 10, 11, 0 + 4, 1 + 5};
  for (Index i = 0; i < 8; ++i) EXPECT_EQ(gradients.weight.data()[i], sums[i]) << i;
  const Tensor<double, 3> x({2, 3, 2});
  EXPECT_THROW(layer.forward(x, Positions(Tensor<Index, 2>({1, 3}, {0, 4, 1}))), ShapeError);
  EXPECT_THROW(layer.forward(x, Positions(Tensor<Index, 2>({3, 3}))), ShapeError);
}

}  // namespace
}  // namespace heed::test
