// SPDX-License-Identifier: MIT
#include <heed/training/optimizers.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <training/tiny_model.hpp>
#include <vector>

#include <heed/io/npy.hpp>

namespace heed {
namespace {

struct Large {
  Tensor<float, 1> first{{70001}};
  Tensor<float, 2> second{Extents<2>{3, 20000}};
  static auto members(auto& model) {
    return Members{member("first", model.first), member("second", model.second)};
  }
};

Large random_large() {
  Large model;
  Random random(1);
  for (float& value : model.first) value = random.normal<float>();
  for (float& value : model.second) value = 100 * random.normal<float>();
  return model;
}

TEST(GradientNorm, AgreesWithLongDoubleForAnyThreads) {
  const Large model = random_large();
  long double exact = 0;
  for (const float value : model.first) exact += static_cast<long double>(value) * value;
  for (const float value : model.second) exact += static_cast<long double>(value) * value;
  const auto expected = static_cast<double>(std::sqrt(exact));
  const Index threads = thread_count();
  set_thread_count(1);
  const double one = gradient_norm(model).value;
  EXPECT_NEAR(one / expected, 1, 1e-14);
  for (const Index count : {2, 3, 5}) {
    set_thread_count(count);
    EXPECT_EQ(gradient_norm(model).value, one);
  }
  set_thread_count(threads);
}

TEST(GradientNorm, FloatsDoNotOverflow) {
  Large model;
  model.first(7) = 3e38f;
  model.second(2, 5) = -2e38f;
  const auto norm = gradient_norm(model);
  EXPECT_TRUE(norm.infinite.empty());
  EXPECT_NEAR(norm.value / std::hypot(3e38, 2e38), 1, 1e-6);
}

TEST(GradientNorm, NamesTheFirstThatIsNotFinite) {
  Large model = random_large();
  model.second(2, 19999) = NAN;
  EXPECT_EQ(gradient_norm(model).infinite, "second");
  model.first(70000) = -INFINITY;
  EXPECT_EQ(gradient_norm(model).infinite, "first");
}

TEST(ClipGradientNorm, ScalesWhatIsTooLong) {
  Large model = random_large();
  const double norm = gradient_norm(model).value;
  const Large before = model;
  EXPECT_EQ(clip_gradient_norm(model, norm).value, norm);
  EXPECT_EQ(std::memcmp(model.first.data(), before.first.data(), 70001 * sizeof(float)), 0);
  EXPECT_EQ(clip_gradient_norm(model, 2.5).value, norm);
  EXPECT_NEAR(gradient_norm(model).value, 2.5, 1e-6);
  EXPECT_NEAR(model.second(1, 1) / before.second(1, 1), 2.5 / norm, 1e-8);
}

TEST(ClipGradientNorm, LeavesWhatIsNotFinite) {
  Large model = random_large();
  model.first(3) = INFINITY;
  const Large before = model;
  const auto norm = clip_gradient_norm(model, 1);
  EXPECT_EQ(norm.infinite, "first");
  EXPECT_EQ(std::memcmp(model.second.data(), before.second.data(), 60000 * sizeof(float)), 0);
  EXPECT_THROW(clip_gradient_norm(model, 0), InvalidArgument);
  EXPECT_THROW(clip_gradient_norm(model, NAN), InvalidArgument);
}

TEST(ClipGradientNorm, LeavesFiniteNumbersWhoseSquaresAreNot) {
  Random random(1);
  auto gradients = random_tiny_model<double>(random);
  std::vector<std::string> names;
  for_each_parameter(
      [&](std::string_view name, auto& gradient) {
        names.emplace_back(name);
        if (names.size() <= 2) gradient.data()[0] = 1.2e154;  // whose squares add up to infinity
      },
      gradients);
  const auto before = gradients;
  EXPECT_EQ(clip_gradient_norm(gradients, 1).infinite, names[1]);
  std::vector<double> kept;
  for_each_parameter(
      [&](std::string_view, const auto& g) { kept.insert(kept.end(), g.begin(), g.end()); },
      before);
  std::size_t at = 0;
  for_each_parameter(
      [&](std::string_view, const auto& gradient) {
        for (const double value : gradient) EXPECT_EQ(value, kept[at++]);
      },
      gradients);
}

TEST(OptimizerStep, PlansRateScaleAndClipping) {
  Random random(1);
  const auto gradients = random_tiny_model<double>(random);
  const double norm = gradient_norm(gradients).value;
  const auto plain = detail::plan_step("test", 0.5, gradients, {});
  EXPECT_EQ(plain.report.learning_rate, 0.5);
  EXPECT_EQ(plain.gradient_factor, 1);
  EXPECT_EQ(plain.report.gradient_norm, norm);
  const auto clipped = detail::plan_step(
      "test", 0.5, gradients, {.learning_rate = 2, .max_gradient_norm = 1, .gradient_scale = -2});
  EXPECT_EQ(clipped.report.learning_rate, 2);
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

TEST(OptimizerStep, AFactorThatMakesFloatsInfiniteIsRefused) {
  TinyModel<float> model, gradients;
  gradients.bias(0) = 1e30f;
  Sgd optimizer(model);
  const auto report = optimizer.step(model, gradients, {.gradient_scale = 1e30});
  EXPECT_FALSE(report.taken);
  EXPECT_DOUBLE_EQ(report.gradient_norm, 1e30 * static_cast<double>(1e30f));
  EXPECT_EQ(optimizer.steps(), 0);
  EXPECT_EQ(model.bias(0), 0);
  EXPECT_TRUE(optimizer.step(model, gradients, {.gradient_scale = -1e8}).taken);
  EXPECT_TRUE(
      optimizer.step(model, gradients, {.max_gradient_norm = 1, .gradient_scale = 1e30}).taken)
      << "clipped";
  TinyModel<double> wide;
  wide.bias(0) = 1e30;
  EXPECT_TRUE(detail::plan_step("test", 1, wide, {.gradient_scale = 1e30}).report.taken);
}

TEST(OptimizerStep, ChecksSettings) {
  EXPECT_NO_THROW(detail::check_setting("test", "x", 0, 0));
  EXPECT_THROW(detail::check_setting("test", "x", -0.1, 0), InvalidArgument);
  EXPECT_THROW(detail::check_setting("test", "x", 1, 0, 1), InvalidArgument);
  try {
    detail::check_setting("test", "x", INFINITY, 0);
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "test: x inf, expected 0 or more, and finite");
  }
  const TinyModel<double> gradients;
  EXPECT_THROW(detail::plan_step("test", -1, gradients, {}), InvalidArgument);
  EXPECT_THROW(detail::plan_step("test", 1, gradients, {.gradient_scale = 1 / 0.0}),
               InvalidArgument);
}

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
  TinyModel<double> other;
  EXPECT_THROW(optimizer.step(model, other, {.learning_rate = NAN}), InvalidArgument);
  EXPECT_THROW(optimizer.step(model, other, {.max_gradient_norm = 0}), InvalidArgument);
  EXPECT_THROW(optimizer.step(model, model), InvalidArgument);
  other.bias = Tensor<double, 1>({6});
  EXPECT_THROW(optimizer.step(model, other), ShapeError);
}

/// 50 steps beside PyTorch's; the worst relative difference.
template <class Optimizer>
double difference_from_torch(Optimizer optimizer, TinyModel<double> model, const char* name) {
  const auto gradients = load_npy<double, 2>(golden + "gradients.npy");
  const auto expected = load_npy<double, 2>(golden + name + ".npy");
  double worst = 0;
  for (Index step = 0; step < 50; ++step) {
    const auto report = optimizer.step(model, tiny_model<double>(&gradients(step, 0)));
    EXPECT_TRUE(report.taken);
    for (Index i = 0; i < 17; ++i) {
      const double ours = i < 12 ? model.weight.data()[i] : model.bias(i - 12);
      worst = std::fmax(worst, std::fabs(ours / expected(step, i) - 1));
    }
  }
  EXPECT_EQ(optimizer.steps(), 50);
  return worst;
}

TinyModel<double> start() {
  const auto values = load_npy<double, 1>(golden + "start.npy");
  return tiny_model<double>(values.data());
}

TEST(Adam, EqualsPyTorchForFiftySteps) {
  const auto model = start();
  EXPECT_LT(difference_from_torch(Adam(model, {.learning_rate = 0.01}), model, "adam"), 1e-12);
  const AdamOptions decay{
      .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  EXPECT_LT(difference_from_torch(Adam(model, decay), model, "adam_decay"), 1e-12);
  const AdamWOptions apart{.learning_rate = 0.02, .weight_decay = 0.1};
  EXPECT_LT(difference_from_torch(AdamW(model, apart), model, "adamw"), 1e-12);
}

struct Single {
  Tensor<float, 1> value{{1}};
  static auto members(auto& model) { return Members{member("value", model.value)}; }
};

TEST(Adam, AShortMemoryForgetsAsPyTorchs) {
  Single model, gradient;
  Adam optimizer(model, {.learning_rate = 1, .beta1 = 0, .beta2 = 0});
  for (const auto& [slope, expected] : {std::pair{1.f, -1.f}, {1e-8f, -1.5f}}) {
    gradient.value(0) = slope;
    optimizer.step(model, gradient);
    EXPECT_NEAR(model.value(0), expected, 1e-6);
  }
}

TEST(Adam, FloatFollowsDouble) {
  Random random(1);
  const auto from = random_tiny_model<double>(random);
  TinyModel<double> wide = from;
  TinyModel<float> narrow;
  for (Index i = 0; i < 12; ++i)
    narrow.weight.data()[i] = static_cast<float>(from.weight.data()[i]);
  for (Index i = 0; i < 5; ++i) narrow.bias(i) = static_cast<float>(from.bias(i));
  AdamW wide_steps(wide);
  AdamW narrow_steps(narrow);
  for (int step = 0; step < 200; ++step) {
    Random copy = random;
    wide_steps.step(wide, random_tiny_model<double>(random));
    narrow_steps.step(narrow, random_tiny_model<float>(copy));
  }
  for (Index i = 0; i < 12; ++i) {
    EXPECT_NEAR(narrow.weight.data()[i], wide.weight.data()[i], 2e-5);
  }
}

template <class T>
bool same_bits(const TinyModel<T>& a, const TinyModel<T>& b) {
  return std::memcmp(a.weight.data(), b.weight.data(), 12 * sizeof(T)) == 0 &&
         std::memcmp(a.bias.data(), b.bias.data(), 5 * sizeof(T)) == 0;
}

TEST(Adam, GradientsThatAreNotFiniteChangeNothingAndAreReported) {
  Random random(2);
  auto model = random_tiny_model<float>(random);
  AdamW optimizer(model, {.weight_decay = 0.1});
  optimizer.step(model, random_tiny_model<float>(random));
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    auto gradients = random_tiny_model<float>(random);
    gradients.bias(3) = bad;
    const auto before = model;
    const auto state = optimizer;
    const StepReport report = optimizer.step(model, gradients);
    EXPECT_FALSE(report.taken);
    EXPECT_EQ(report.refused_by, "bias");
    EXPECT_FALSE(std::isfinite(report.gradient_norm));
    EXPECT_TRUE(same_bits(model, before));
    EXPECT_EQ(optimizer.steps(), 1);
    for_each_parameter(
        [](std::string_view, const auto& now, const auto& then) {
          EXPECT_EQ(std::memcmp(now.data(), then.data(),
                                static_cast<std::size_t>(now.size()) * sizeof(float)),
                    0);
        },
        optimizer, state);
  }
}

TEST(Adam, ClipsScalesAndTakesASchedulesRate) {
  Random random(3);
  const auto from = random_tiny_model<double>(random);
  auto gradients = random_tiny_model<double>(random);
  const double norm = gradient_norm(gradients).value;
  auto by_option = from, by_hand = from;
  Adam one(from, {.learning_rate = 1}), other(from, {.learning_rate = 0.125});
  const auto report =
      one.step(by_option, gradients,
               {.learning_rate = 0.125, .max_gradient_norm = norm / 8, .gradient_scale = 0.5});
  EXPECT_DOUBLE_EQ(report.gradient_norm, norm / 2);
  for_each_parameter(
      [](std::string_view, auto& gradient) {
        for (double& value : gradient) value *= 0.125;
      },
      gradients);
  other.step(by_hand, gradients);
  for (Index i = 0; i < 12; ++i) {
    EXPECT_NEAR(by_option.weight.data()[i], by_hand.weight.data()[i], 1e-14);
  }
}

TEST(Adam, BiasesMayBeSparedDecay) {
  Random random(4);
  const auto from = random_tiny_model<double>(random);
  auto model = from;
  AdamW optimizer(model, {.learning_rate = 0.1, .weight_decay = 0.5, .decay_vectors = false});
  optimizer.step(model, zeros_like(model));
  EXPECT_EQ(model.bias(0), from.bias(0));
  EXPECT_DOUBLE_EQ(model.weight(0, 0), 0.95 * from.weight(0, 0));
}

struct Wide {
  Tensor<float, 1> values{{100003}};
  static auto members(auto& model) { return Members{member("values", model.values)}; }
};

TEST(Adam, SameBitsForAnyThreads) {
  Random random(5);
  Wide from, gradients;
  for (float& value : from.values) value = random.normal<float>();
  for (float& value : gradients.values) value = random.normal<float>();
  const Index threads = thread_count();
  std::vector<Wide> results;
  for (const Index count : {1, 2, 3}) {
    set_thread_count(count);
    Wide model = from;
    AdamW optimizer(model);
    for (int step = 0; step < 3; ++step) {
      optimizer.step(model, gradients, {.max_gradient_norm = 1});
    }
    results.push_back(model);
  }
  set_thread_count(threads);
  for (const Wide& result : results) {
    EXPECT_EQ(std::memcmp(result.values.data(), results[0].values.data(), 100003 * sizeof(float)),
              0);
  }
}

TEST(Adam, RefusesSettingsThatMakeNoSense) {
  const TinyModel<double> model;
  EXPECT_THROW(Adam(model, {.learning_rate = -1}), InvalidArgument);
  EXPECT_THROW(Adam(model, {.learning_rate = NAN}), InvalidArgument);
  EXPECT_THROW(Adam(model, {.beta1 = 1}), InvalidArgument);
  EXPECT_THROW(Adam(model, {.epsilon = -1}), InvalidArgument);
  EXPECT_THROW(AdamW(model, {.weight_decay = -1}), InvalidArgument);
  try {
    Adam(model, {.beta2 = 2});
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "Adam: beta2 2, expected 0 or more and below 1");
  }
}
TEST(Optimizers, StepsTakenAreNoFewerThanNone) {
  // Adam would divide by 1 - beta^0 = 0 and write NaN.
  const TinyModel<double> model;
  AdamW adam(model);
  Sgd sgd(model);
  EXPECT_THROW(sgd.set_steps(-1), InvalidArgument);
  try {
    adam.set_steps(-1);
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "AdamW: -1 steps taken, expected 0 or more");
  }
  EXPECT_EQ(adam.steps(), 0);
}

}  // namespace
}  // namespace heed
