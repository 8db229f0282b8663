// SPDX-License-Identifier: MIT
#include <heed/layers/residual.hpp>

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
  const NormOptions norm{.dim = 4};
  const Tensor<double, 3> x({1, 1, 4}, {1, 5, -2, 3});
  const Residual<double> before(norm, true, 0, random), after(norm, false, 0, random);
  const auto normed = before.norm.forward(x);
  const auto y = before.forward(x, twice);
  for (Index i = 0; i < 4; ++i) EXPECT_NEAR(y(0, 0, i), x(0, 0, i) + 2 * normed(0, 0, i), 1e-15);
  auto sum = twice(x);
  sum += x;
  EXPECT_TRUE(same_bits(after.forward(x, twice), after.norm.forward(sum)));
}

TEST(Residual, DropsThePartAlone) {
  Random random(2);
  const Residual<double> residual({.dim = 4}, true, 1, random);
  const Tensor<double, 3> x({1, 1, 4}, {1, 5, -2, 3});
  Residual<double>::Saved saved;
  EXPECT_TRUE(same_bits(residual.forward(x, Noise{3}, saved, twice), x));
  EXPECT_FALSE(same_bits(residual.forward(x, Noise{}, saved, twice), x));
}

}  // namespace
}  // namespace heed::test
