// SPDX-License-Identifier: MIT
#include <heed/layers/learned_positions.hpp>

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
}

TEST(LearnedPositions, RefusesPositionsPastTheTable) {
  Random random(3);
  const LearnedPositions<float> layer({.max_length = 4, .dim = 2}, random);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 5, 2})), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 2}), 3), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 2}), -1), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 3})), ShapeError);
}

}  // namespace
}  // namespace heed::test
