// SPDX-License-Identifier: MIT
#include <heed/training/optimizers.hpp>

#include <gtest/gtest.h>

#include <training/tiny_model.hpp>

namespace heed {
namespace {

TEST(OptimizerStep, PlansRateScaleAndClipping) {
  Random random(1);
  const auto gradients = random_tiny_model<double>(random);
  const double norm = gradient_norm(gradients).value;
  const auto plain = detail::plan_step("test", 0.5, gradients, {});
  EXPECT_EQ(plain.learning_rate, 0.5);
  EXPECT_EQ(plain.gradient_factor, 1);
  EXPECT_EQ(plain.report.gradient_norm, norm);
  const auto clipped = detail::plan_step(
      "test", 0.5, gradients, {.learning_rate = 2, .max_gradient_norm = 1, .gradient_scale = -2});
  EXPECT_EQ(clipped.learning_rate, 2);
  EXPECT_DOUBLE_EQ(clipped.report.gradient_norm, 2 * norm);
  EXPECT_DOUBLE_EQ(clipped.gradient_factor, -1 / norm);
}

TEST(OptimizerStep, ANormThatOverflowsIsRefused) {
  TinyModel<double> gradients;
  gradients.bias(0) = 1e200;
  const auto plan = detail::plan_step("test", 0.5, gradients, {});
  EXPECT_FALSE(plan.report.taken);
  EXPECT_EQ(plan.report.refused_by, "bias");
}

TEST(OptimizerStep, ChecksSettings) {
  EXPECT_NO_THROW(detail::check_setting("test", "x", 0, 0));
  EXPECT_THROW(detail::check_setting("test", "x", -0.1, 0), InvalidArgument);
  EXPECT_THROW(detail::check_setting("test", "x", 1, 0, 1), InvalidArgument);
  const TinyModel<double> gradients;
  EXPECT_THROW(detail::plan_step("test", -1, gradients, {}), InvalidArgument);
  EXPECT_THROW(detail::plan_step("test", 1, gradients, {.gradient_scale = 1 / 0.0}),
               InvalidArgument);
}

}  // namespace
}  // namespace heed
