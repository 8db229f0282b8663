// SPDX-License-Identifier: MIT
#include <heed/training/train.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <training/tiny_model.hpp>
#include <vector>

#include <heed/training/losses.hpp>
#include <heed/training/optimizers.hpp>

namespace heed {
namespace {

std::vector<Index> flat(const std::vector<std::vector<Index>>& batches) {
  std::vector<Index> items;
  for (const auto& batch : batches) items.insert(items.end(), batch.begin(), batch.end());
  return items;
}

TEST(Batches, EveryItemOnceAndTheLastPartialBatchKept) {
  const std::vector<Index> lengths(103, 5);
  for (const bool shuffle : {false, true}) {
    const auto batches = make_batches(lengths, 0, {.batch_size = 10, .shuffle = shuffle});
    ASSERT_EQ(batches.size(), 11u);
    EXPECT_EQ(batches.back().size(), 3u);
    auto items = flat(batches);
    EXPECT_EQ(std::is_sorted(items.begin(), items.end()), !shuffle);
    std::sort(items.begin(), items.end());
    for (Index i = 0; i < 103; ++i) EXPECT_EQ(items[static_cast<std::size_t>(i)], i);
  }
  EXPECT_TRUE(make_batches({}, 0).empty());
}

TEST(Batches, EpochsAndSeedsDifferAndRepeat) {
  const std::vector<Index> lengths(100, 1);
  const auto first = make_batches(lengths, 3, {.seed = 5});
  EXPECT_EQ(make_batches(lengths, 3, {.seed = 5}), first);
  EXPECT_NE(make_batches(lengths, 4, {.seed = 5}), first);
  EXPECT_NE(make_batches(lengths, 3, {.seed = 6}), first);
}

TEST(Batches, EveryOrderIsEquallyLikely) {
  std::map<std::vector<Index>, int> counts;
  const std::vector<Index> lengths(3, 1);
  for (Index epoch = 0; epoch < 6000; ++epoch) {
    ++counts[flat(make_batches(lengths, epoch, {.seed = 1}))];
  }
  ASSERT_EQ(counts.size(), 6u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.) * (count - 1000.) / 1000;
  EXPECT_LT(chi_square, 20.5) << "0.1 % of the chi-square distribution of 5 degrees of freedom";
}

TEST(Batches, BucketsPutLikeLengthsTogether) {
  std::vector<Index> lengths;
  Random random(1);
  for (int i = 0; i < 1000; ++i) lengths.push_back(1 + random.integer(100));
  const auto padded = [&](Index buckets) {
    Index tokens = 0;
    const auto batches = make_batches(lengths, 0, {.batch_size = 16, .bucket_batches = buckets});
    auto items = flat(batches);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(std::unique(items.begin(), items.end()), items.end());
    EXPECT_EQ(items.size(), 1000u);
    for (const auto& batch : batches) {
      Index longest = 0;
      for (const Index item : batch) {
        longest = std::max(longest, lengths[static_cast<std::size_t>(item)]);
      }
      tokens += longest * static_cast<Index>(batch.size());
    }
    return tokens;
  };
  const Index real = std::accumulate(lengths.begin(), lengths.end(), Index{0});
  EXPECT_GT(padded(0), real * 17 / 10);
  EXPECT_LT(padded(20), real * 12 / 10);
}

TEST(Batches, NextTokensPaddedToTheLongest) {
  const std::vector<std::vector<Index>> sequences = {{1, 2, 3, 4}, {5}, {6, 7}};
  const std::vector<Index> chosen = {2, 0, 1};
  const auto batch = next_token_batch(sequences, chosen, {.padding = 9});
  ASSERT_EQ(batch.tokens.extents(), (Extents<2>{3, 3}));
  const Index tokens[] = {6, 9, 9, 1, 2, 3, 9, 9, 9};
  const Index targets[] = {7, -100, -100, 2, 3, 4, -100, -100, -100};
  for (Index i = 0; i < 9; ++i) {
    EXPECT_EQ(batch.tokens.data()[i], tokens[i]);
    EXPECT_EQ(batch.targets.data()[i], targets[i]);
  }
  EXPECT_EQ(batch.lengths, (std::vector<Index>{1, 3, 0}));
}

TEST(Batches, WindowsOfAText) {
  std::vector<Index> text(20);
  for (std::size_t i = 0; i < 20; ++i) text[i] = static_cast<Index>(i);
  Random random(3);
  const auto batch = random_windows(text, 200, 4, random);
  Index first = 99, last = 0;
  for (Index row = 0; row < 200; ++row) {
    first = std::min(first, batch.tokens(row, 0));
    last = std::max(last, batch.targets(row, 3));
    for (Index i = 0; i < 4; ++i) {
      EXPECT_EQ(batch.tokens(row, i), batch.tokens(row, 0) + i);
      EXPECT_EQ(batch.targets(row, i), batch.tokens(row, i) + 1);
    }
  }
  EXPECT_EQ(first, 0);
  EXPECT_EQ(last, 19);
}

TEST(Batches, Refuse) {
  const std::vector<Index> lengths(3, 1);
  EXPECT_THROW(make_batches(lengths, 0, {.batch_size = 0}), InvalidArgument);
  EXPECT_THROW(make_batches(lengths, 0, {.bucket_batches = -1}), InvalidArgument);
  const std::vector<std::vector<Index>> sequences = {{1, 2}, {}};
  for (const Index past : {static_cast<Index>(sequences.size()), Index{7}}) {
    EXPECT_THROW(next_token_batch(sequences, std::vector<Index>{past}), InvalidArgument);
  }
  EXPECT_THROW(next_token_batch(sequences, std::vector<Index>{-1}), InvalidArgument);
  EXPECT_THROW(next_token_batch(sequences, std::vector<Index>{1}), InvalidArgument);
  Random random(1);
  EXPECT_THROW(random_windows(lengths, 1, 3, random), InvalidArgument);
  EXPECT_THROW(random_windows(lengths, 1, 0, random), InvalidArgument);
}

TEST(EarlyStopping, StopsAfterPatienceAndKeepsTheBest) {
  EarlyStopping<int> stopping(-1, {.patience = 2});
  EXPECT_EQ(stopping.best_model(), -1);
  const double losses[] = {3, 2, 2.5, 1, 1, 1.5};
  const bool stops[] = {false, false, false, false, false, true};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(stopping.update(losses[i], i), stops[i]) << i;
  EXPECT_EQ(stopping.best_model(), 3) << "an equal loss is no improvement";
  EXPECT_EQ(stopping.best_loss(), 1);
  EXPECT_EQ(stopping.best_evaluation(), 4);
  EXPECT_EQ(stopping.evaluations(), 6);
}

TEST(EarlyStopping, SmallImprovementsMayNotCount) {
  EarlyStopping<int> stopping(0, {.patience = 2, .min_improvement = 0.1});
  EXPECT_FALSE(stopping.update(1, 1));
  EXPECT_FALSE(stopping.update(0.95, 2));
  EXPECT_FALSE(stopping.update(0.85, 3));
  EXPECT_EQ(stopping.best_model(), 3);
  EXPECT_FALSE(stopping.update(0.8, 4));
  EXPECT_TRUE(stopping.update(0.76, 5));
}

TEST(EarlyStopping, NaNNeverImproves) {
  EarlyStopping<int> stopping(7, {.patience = 2});
  EXPECT_FALSE(stopping.update(NAN, 1));
  EXPECT_TRUE(stopping.update(NAN, 2));
  EXPECT_EQ(stopping.best_model(), 7);
  EXPECT_EQ(stopping.best_evaluation(), 0);
}

TEST(EarlyStopping, RefusesSettingsThatMakeNoSense) {
  EXPECT_THROW(EarlyStopping<int>(0, {.patience = 0}), InvalidArgument);
  EXPECT_THROW(EarlyStopping<int>(0, {.min_improvement = NAN}), InvalidArgument);
}

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

TEST(Train, AccumulatedBatchesAreTheirMeanEachComputedAlone) {
  Imitation task;
  TinyLayer expected = task.layer, sum = zeros_like(task.layer);
  double loss = 0;
  for (Index batch = 0; batch < 3; ++batch) {
    TinyLayer gradients = zeros_like(task.layer);
    loss += task(batch, gradients).loss / 3;
    for (Index i = 0; i < 6; ++i) sum.weight.data()[i] += gradients.weight.data()[i];
    for (Index i = 0; i < 3; ++i) sum.bias(i) += gradients.bias(i);
  }
  Sgd optimizer(task.layer), same = optimizer;
  same.step(expected, sum, {.learning_rate = 0.3, .gradient_scale = 1. / 3});
  train(task.layer, optimizer,
        {.steps = 1, .schedule = schedules::Constant{.rate = 0.3}, .accumulate = 3}, task,
        [&](const StepInfo& info) { EXPECT_EQ(info.loss, loss); });
  for (Index i = 0; i < 6; ++i) {
    EXPECT_EQ(task.layer.weight.data()[i], expected.weight.data()[i]) << i;
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
  EXPECT_THROW(train(task.layer, optimizer, {.steps = 1, .first_step = -1}, task), InvalidArgument)
      << "there is no batch -1";
}

TEST(Train, WithoutAScheduleTheOptimizersOwnRateCounts) {
  Imitation task, same;
  Sgd optimizer(task.layer, {.learning_rate = 0.25}), by_schedule(same.layer);
  train(task.layer, optimizer, {.steps = 2}, task,
        [](const StepInfo& info) { EXPECT_EQ(info.learning_rate, 0.25); });
  train(same.layer, by_schedule, {.steps = 2, .schedule = schedules::Constant{0.25}}, same);
  EXPECT_EQ(task.layer.weight, same.layer.weight);
  Sgd still(task.layer, {.learning_rate = 0});
  train(task.layer, still, {.steps = 1}, task);
  EXPECT_EQ(task.layer.weight, same.layer.weight);
}

}  // namespace
}  // namespace heed
