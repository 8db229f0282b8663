// SPDX-License-Identifier: MIT
#include <heed/layers/sinusoidal_positions.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

TEST(SinusoidalPositions, KeepsTheLaws) {
  check_layer_laws([](auto scalar) { return SinusoidalPositions<decltype(scalar)>(); }, {2, 3, 5},
                   {}, false);
}

TEST(SinusoidalPositions, IsTheFormula) {
  const SinusoidalPositions<double> layer;
  const auto rows = layer.table(3, 6, 7);
  for (Index p = 0; p < 3; ++p) {
    for (Index i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(p + 7) / std::pow(10000, static_cast<double>(i) / 3);
      EXPECT_NEAR(rows(p, 2 * i), std::sin(angle), 1e-14);
      EXPECT_NEAR(rows(p, 2 * i + 1), std::cos(angle), 1e-14);
    }
  }
  const auto y = layer.forward(Tensor<double, 3>({2, 3, 6}), 7);
  for (Index i = 0; i < 18; ++i) EXPECT_EQ(y.data()[18 + i], rows.data()[i]);
}

}  // namespace
}  // namespace heed::test
