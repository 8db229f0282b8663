// SPDX-License-Identifier: MIT
#include <heed/training/gradient_check.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <training/tiny_model.hpp>

namespace heed {
namespace {

TinyLayer random_layer() {
  TinyLayer layer;
  Random random(1);
  for (double& value : layer.weight) value = random.normal();
  for (double& value : layer.bias) value = random.normal();
  return layer;
}

Tensor<double, 2> random_input() {
  Tensor<double, 2> input({4, 2});
  Random random(2);
  for (double& value : input) value = random.normal();
  return input;
}

TEST(GradientCheck, RightGradientsAgree) {
  TinyLayer layer = random_layer();
  const TinyLayer before = layer;
  const auto report = gradient_check_layer(layer, random_input(), Random(3), {});
  EXPECT_LT(report.worst, 1e-11);
  EXPECT_EQ(report.checked, 6 + 3 + 8);
  EXPECT_GT(report.norm, 1);
  EXPECT_EQ(layer.weight(1, 2), before.weight(1, 2)) << "weights are put back";
}

/// A layer whose backward forgets a factor in one place.
struct Wrong : TinyLayer {
  static auto members(auto& layer) {
    return Members{member("inner.weight", layer.weight), member("bias", layer.bias)};
  }
  Tensor<double, 2> backward(const Tensor<double, 2>& grad_out, const Saved& saved,
                             Wrong& gradients) const {
    auto grad_input = TinyLayer::backward(grad_out, saved, gradients);
    gradients.weight(1, 0) *= 1.5;
    return grad_input;
  }
};

TEST(GradientCheck, NamesTheWorstEntry) {
  Wrong layer;
  static_cast<TinyLayer&>(layer) = random_layer();
  const auto report = gradient_check_layer(layer, random_input(), Random(3), {});
  EXPECT_EQ(report.name, "inner.weight");
  EXPECT_EQ(report.element, 3);
  EXPECT_GT(report.worst, 1e-3);
  EXPECT_NEAR(report.claimed, 1.5 * report.measured, 1e-8);
}

TEST(GradientCheck, OfAFunction) {
  std::vector<double> x = {1, -2, 0.5};
  const auto loss = [&] { return x[0] * x[0] * x[1] + x[2]; };
  std::vector<double> gradient = {-4, 1, 1};
  const CheckedGradient tensors[] = {{"x", x, gradient}};
  EXPECT_LT(gradient_check(tensors, loss).worst, 1e-11);
  gradient[2] = 1.1;
  const auto report = gradient_check(tensors, loss);
  EXPECT_EQ(report.element, 2);
  EXPECT_NEAR(report.worst, 0.1 / report.norm, 1e-9);
  gradient[1] = NAN;
  EXPECT_TRUE(std::isnan(gradient_check(tensors, loss).worst));
  EXPECT_EQ(gradient_check(tensors, loss).element, 1);
  EXPECT_EQ(gradient_check(tensors, loss, {.most = 2}).checked, 2);
  const CheckedGradient unequal[] = {{"x", x, std::span(gradient).first(2)}};
  EXPECT_THROW(gradient_check(unequal, loss), ShapeError);
  EXPECT_EQ(gradient_check(std::span<const CheckedGradient>(), loss).worst, 0);
}

TEST(GradientCheck, OfAModelWithALossOfItsOwn) {
  Random random(5);
  auto model = random_tiny_model<double>(random);
  TinyModel<double> gradients = model;  // of half the sum of squares: the weights themselves
  const auto loss = [&] {
    double sum = 0;
    for_each_parameter(
        [&](std::string_view, const auto& p) {
          for (const double value : p) sum += value * value / 2;
        },
        model);
    return sum;
  };
  EXPECT_LT(gradient_check(model, gradients, loss).worst, 1e-11);
}

}  // namespace
}  // namespace heed
