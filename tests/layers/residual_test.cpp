// SPDX-License-Identifier: MIT
#include <heed/layers/blocks.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

Tensor<double, 3> twice(const Tensor<double, 3>& x) {
  auto y = x;
  for (double& value : y) value *= 2;
  return y;
}

TEST(Residual, AddsThePartOfTheNormOrNormsTheSum) {
  Random random(1);
  const Tensor<double, 3> x({1, 1, 4}, {1, 5, -2, 3});
  const Residual<double> before({.model_dim = 4}, random),
      after({.model_dim = 4, .norm_before = false}, random);
  const auto normed = before.norm.forward(x);
  const auto y = before.forward(x, twice);
  for (Index i = 0; i < 4; ++i) EXPECT_NEAR(y(0, 0, i), x(0, 0, i) + 2 * normed(0, 0, i), 1e-15);
  auto sum = twice(x);
  sum += x;
  EXPECT_TRUE(same_bits(after.forward(x, twice), after.norm.forward(sum)));
}

TEST(Residual, DropsThePartAlone) {
  Random random(2);
  const Residual<double> residual({.model_dim = 4, .dropout = 1}, random);
  const Tensor<double, 3> x({1, 1, 4}, {1, 5, -2, 3});
  Residual<double>::Saved saved;
  EXPECT_TRUE(same_bits(residual.forward(x, Noise{3}, saved, twice), x));
  EXPECT_FALSE(same_bits(residual.forward(x, Noise{}, saved, twice), x));
}

}  // namespace
}  // namespace heed::test
