// SPDX-License-Identifier: MIT
#include <heed/training/losses.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

TEST(MeanSquaredError, IsTheMeanOfSquares) {
  const Tensor<float, 2> predictions({2, 2}, {1, 2, 3, 4});
  const Tensor<float, 2> targets({2, 2}, {1, 0, 4, 8});
  const auto [loss, gradient] = mean_squared_error(predictions, targets);
  EXPECT_EQ(loss, (0 + 4 + 1 + 16) / 4.0);
  const float expected[] = {0, 1, -0.5f, -2};
  for (Index i = 0; i < 4; ++i) EXPECT_EQ(gradient.data()[i], expected[i]);
}

TEST(MeanSquaredError, AnyStridesAndNothing) {
  const Tensor<double, 2> values({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto turned = values.view().permute({1, 0});
  const auto [loss, gradient] = mean_squared_error(turned, turned.reverse(0));
  EXPECT_DOUBLE_EQ(loss, (4 + 4 + 4 + 4) / 6.0);
  EXPECT_EQ(gradient.extents(), (Extents<2>{3, 2}));
  EXPECT_DOUBLE_EQ(gradient(0, 0), 2 * (1 - 3) / 6.0);
  EXPECT_EQ(mean_squared_error(Tensor<double, 1>({0}), Tensor<double, 1>({0})).loss, 0);
  const Tensor<double, 1> nan({1}, {NAN});
  EXPECT_TRUE(std::isnan(mean_squared_error(nan, nan).loss));
}

TEST(MeanSquaredError, RefusesOtherExtents) {
  try {
    mean_squared_error(Tensor<float, 1>({2}), Tensor<float, 1>({3}));
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "mean_squared_error: predictions are (2), targets (3)");
  }
}

}  // namespace
}  // namespace heed
