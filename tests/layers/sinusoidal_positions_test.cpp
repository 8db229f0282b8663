// SPDX-License-Identifier: MIT
#include <heed/layers/embedding.hpp>

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

TEST(SinusoidalPositions, AreThoseOfEveryToken) {
  const SinusoidalPositions<double> layer;
  for (const Index last : {5, 1000000}) {  // a table of all, or a row for each
    const Positions positions(Tensor<Index, 2>({2, 3}, {3, 0, 3, 1, last, 2}));
    const auto y = layer.forward(Tensor<double, 3>({2, 3, 6}), positions);
    for (Index i = 0; i < 6; ++i) {
      const auto row = layer.table(1, 6, positions.at(i / 3, i % 3));
      for (Index d = 0; d < 6; ++d) EXPECT_EQ(y.data()[6 * i + d], row(0, d)) << last;
    }
  }
  const Tensor<double, 3> x({2, 3, 6});
  EXPECT_THROW(layer.forward(x, Positions(Tensor<Index, 2>({2, 2}))), ShapeError);
}

}  // namespace
}  // namespace heed::test
