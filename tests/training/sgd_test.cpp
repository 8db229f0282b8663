// SPDX-License-Identifier: MIT
#include <heed/training/optimizers.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <training/tiny_model.hpp>
#include <heed/io/npy.hpp>

namespace heed {
namespace {

const std::string golden = HEED_TEST_DATA "/training/";

void expect_torch(const SgdOptions& options, const char* name) {
  const auto values = load_npy<double, 1>(golden + "start.npy");
  const auto gradients = load_npy<double, 2>(golden + "gradients.npy");
  const auto expected = load_npy<double, 2>(golden + name + ".npy");
  auto model = tiny_model<double>(values.data());
  Sgd optimizer(model, options);
  for (Index step = 0; step < 50; ++step) {
    optimizer.step(model, tiny_model<double>(&gradients(step, 0)));
    for (Index i = 0; i < 17; ++i) {
      const double ours = i < 12 ? model.weight.data()[i] : model.bias(i - 12);
      EXPECT_NEAR(ours / expected(step, i), 1, 1e-12) << name << " step " << step;
    }
  }
}

TEST(Sgd, EqualsPyTorchForFiftySteps) {
  expect_torch({.learning_rate = 0.05}, "sgd");
  expect_torch({.learning_rate = 0.05, .momentum = 0.9}, "sgd_momentum");
  expect_torch({.learning_rate = 0.05, .momentum = 0.8, .weight_decay = 0.02, .nesterov = true},
               "sgd_nesterov");
}

TEST(Sgd, RefusesGradientsThatAreNotFinite) {
  Random random(1);
  auto model = random_tiny_model<double>(random);
  auto gradients = random_tiny_model<double>(random);
  Sgd optimizer(model, {.momentum = 0.9});
  const auto before = model;
  gradients.weight(2, 1) = NAN;
  const auto report = optimizer.step(model, gradients);
  EXPECT_FALSE(report.taken);
  EXPECT_EQ(report.refused_by, "weight");
  EXPECT_EQ(optimizer.steps(), 0);
  for (Index i = 0; i < 12; ++i) EXPECT_EQ(model.weight.data()[i], before.weight.data()[i]);
  for_each_parameter(
      [](std::string_view name, const auto& velocity) {
        EXPECT_EQ(name.substr(0, 9), "velocity.");
        for (const double value : velocity) EXPECT_EQ(value, 0);
      },
      optimizer);
}

TEST(Sgd, RefusesSettingsAndShapes) {
  TinyModel<double> model;
  EXPECT_THROW(Sgd(model, {.momentum = 1}), InvalidArgument);
  EXPECT_THROW(Sgd(model, {.weight_decay = -1}), InvalidArgument);
  Sgd optimizer(model);
  EXPECT_THROW(optimizer.step(model, model, {.learning_rate = NAN}), InvalidArgument);
  EXPECT_THROW(optimizer.step(model, model, {.max_gradient_norm = 0}), InvalidArgument);
  TinyModel<double> other;
  other.bias = Tensor<double, 1>({6});
  EXPECT_THROW(optimizer.step(model, other), ShapeError);
}

}  // namespace
}  // namespace heed
