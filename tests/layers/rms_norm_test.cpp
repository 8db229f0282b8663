// SPDX-License-Identifier: MIT
#include <heed/layers/rms_norm.hpp>

#include "laws/any_rank.hpp"

namespace heed::test {
namespace {

TEST(RMSNorm, KeepsTheLaws) {
  check_layer_laws([](auto scalar) { return RMSNorm<decltype(scalar)>({.dim = 9}); }, {2, 3, 9},
                   {"weight"});
}

TEST(RMSNorm, BringsRowsToMeanSquareOne) {
  const RMSNorm<double> layer({.dim = 2, .epsilon = 0});
  const auto y = layer.forward(Tensor<double, 3>({1, 1, 2}, {3, 4}));
  EXPECT_NEAR(y(0, 0, 0), 3 / std::sqrt(12.5), 1e-15);
  EXPECT_NEAR(y(0, 0, 1), 4 / std::sqrt(12.5), 1e-15);
}

TEST(RMSNorm, TakesRowsOfAnyRank) { expect_any_rank(RMSNorm<float>(37), 37); }

TEST(RMSNorm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(RMSNorm<float>({.dim = 3}).forward(Tensor<float, 3>({1, 2, 4})), ShapeError);
  EXPECT_THROW(RMSNorm<float>({.dim = 0}), InvalidArgument);
}

}  // namespace
}  // namespace heed::test
