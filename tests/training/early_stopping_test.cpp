// SPDX-License-Identifier: MIT
#include <heed/training/train.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

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

}  // namespace
}  // namespace heed
