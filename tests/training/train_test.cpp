// SPDX-License-Identifier: MIT
#include <heed/training/train.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <training/tiny_model.hpp>
#include <heed/training/losses.hpp>
#include <heed/training/optimizers.hpp>

namespace heed {
namespace {

/// Learns to imitate another layer of the same kind.
struct Imitation {
  TinyLayer teacher, layer;

  Imitation() {
    Random random(1);
    for (double& value : teacher.weight) value = random.normal();
    for (double& value : layer.weight) value = random.normal();
    for (double& value : layer.bias) value = 0.5;
    for (double& value : teacher.bias) value = 1;
  }
  BatchLoss operator()(Index batch, TinyLayer& gradients) const {
    Random random(2, static_cast<std::uint64_t>(batch));
    Tensor<double, 2> input({8, 2});
    for (double& value : input) value = random.normal();
    TinyLayer::Saved saved, unused;
    const auto out = layer.forward(input, saved);
    const auto [loss, grad_out] = mean_squared_error(out, teacher.forward(input, unused));
    layer.backward(grad_out, saved, gradients);
    return {loss, 8};
  }
};

TEST(Train, LossFallsAndEveryStepIsTold) {
  Imitation task;
  Adam optimizer(task.layer);
  std::vector<StepInfo> steps;
  const TrainOptions options{
      .steps = 1500,
      .schedule = schedules::warm_up(10, schedules::Cosine{.rate = 0.05, .steps = 1490}),
      .max_gradient_norm = 10};
  EXPECT_EQ(train(task.layer, optimizer, options, task,
                  [&](const StepInfo& info) { steps.push_back(info); }),
            1500);
  ASSERT_EQ(steps.size(), 1500u);
  EXPECT_GT(steps.front().loss, 1);
  EXPECT_LT(steps.back().loss, 1e-3);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, static_cast<Index>(i));
    EXPECT_EQ(steps[i].learning_rate, options.schedule(static_cast<Index>(i)));
    EXPECT_GT(steps[i].tokens_per_second, 0);
    EXPECT_GT(steps[i].gradient_norm, 0);
    EXPECT_TRUE(steps[i].taken);
  }
}

TEST(Train, StopsWhenAskedAndGoesOnWithTheSameBits) {
  const TrainOptions half{.steps = 20}, whole{.steps = 40}, rest{.steps = 40, .first_step = 20};
  Imitation one, two;
  Adam first(one.layer), second(two.layer);
  const auto ignore = [](const StepInfo&) {};
  train(one.layer, first, whole, one, ignore);
  EXPECT_EQ(
      train(two.layer, second, whole, two, [](const StepInfo& info) { return info.step + 1 < 20; }),
      20);
  train(two.layer, second, rest, two, ignore);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(one.layer.weight.data()[i], two.layer.weight.data()[i]);
}

TEST(Train, AccumulatedBatchesAreTheirMean) {
  Imitation task;
  const TinyLayer before = task.layer;
  TinyLayer gradients = zeros_like(task.layer);
  double loss = 0;
  for (Index batch = 0; batch < 3; ++batch) loss += task(batch, gradients).loss;
  Sgd optimizer(task.layer);
  train(task.layer, optimizer,
        {.steps = 1, .schedule = schedules::Constant{.rate = 0.3}, .accumulate = 3}, task,
        [&](const StepInfo& info) { EXPECT_NEAR(info.loss, loss / 3, 1e-14); });
  for (Index i = 0; i < 6; ++i) {
    EXPECT_NEAR(task.layer.weight.data()[i],
                before.weight.data()[i] - 0.1 * gradients.weight.data()[i], 1e-14);
  }
}

TEST(Train, AStepOfNaNIsToldAndNotTaken) {
  Imitation task;
  Adam optimizer(task.layer);
  std::vector<bool> taken;
  const auto compute = [&](Index batch, TinyLayer& gradients) {
    const BatchLoss loss = task(batch, gradients);
    if (batch == 1) gradients.bias(0) = NAN;
    return loss;
  };
  train(task.layer, optimizer, {.steps = 3}, compute, [&](const StepInfo& info) {
    taken.push_back(info.taken);
    EXPECT_EQ(info.refused_by, info.taken ? "" : "bias");
    for (const double value : task.layer.weight) EXPECT_TRUE(std::isfinite(value));
  });
  EXPECT_EQ(taken, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(optimizer.steps(), 2);
  EXPECT_THROW(
      train(task.layer, optimizer, {.steps = 1, .accumulate = 0}, task, [](const StepInfo&) {}),
      InvalidArgument);
}

}  // namespace
}  // namespace heed
