// SPDX-License-Identifier: MIT
#include <heed/training/schedule.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <heed/io/npy.hpp>

namespace heed {
namespace {

using schedules::Constant;
using schedules::Cosine;
using schedules::Linear;
using schedules::sequence;
using schedules::Steps;
using schedules::warm_up;

void expect_torch(const Schedule& schedule, const std::string& name) {
  const auto expected = load_npy<double, 1>(HEED_TEST_DATA "/training/schedule_" + name + ".npy");
  for (Index step = 0; step < 60; ++step) {
    EXPECT_NEAR(schedule(step), expected(step), 1e-15) << name << " " << step;
  }
}

TEST(Schedule, EqualPyTorch) {
  expect_torch(Cosine{.rate = 0.3, .least = 1e-4, .steps = 59}, "cosine");
  expect_torch(Cosine{.rate = 0.3, .steps = 8, .restarts = true, .growth = 2}, "restarts");
  expect_torch(Steps{.rate = 0.3, .factor = 0.5, .every = 7}, "steps");
}

TEST(Schedule, FirstAndLastSteps) {
  const Cosine cosine{.rate = 1, .least = 0.1, .steps = 100};
  EXPECT_EQ(cosine(0), 1);
  EXPECT_LT(cosine(1), 1);
  EXPECT_GT(cosine(1), 0.999);
  EXPECT_NEAR(cosine(50), 0.55, 1e-15);
  EXPECT_GT(cosine(99), 0.1);
  EXPECT_EQ(cosine(100), 0.1);
  EXPECT_EQ(cosine(101), 0.1) << "it does not rise again";
  EXPECT_EQ(cosine(1000000), 0.1);
  const Cosine saw{.rate = 1, .steps = 10, .restarts = true};
  EXPECT_EQ(saw(0), saw(10));
  EXPECT_EQ(saw(9), saw(19));
  EXPECT_EQ(saw(10000000000), 1);
  const Linear linear{.rate = 1, .last = 0, .steps = 4};
  EXPECT_EQ(linear(0), 1);
  EXPECT_EQ(linear(1), 0.75);
  EXPECT_EQ(linear(4), 0);
  EXPECT_EQ(linear(5), 0);
  const Steps steps{.rate = 1, .factor = 0.5, .every = 10};
  EXPECT_EQ(steps(9), 1);
  EXPECT_EQ(steps(10), 0.5);
  EXPECT_EQ(steps(30), 0.125);
  EXPECT_EQ(Constant{.rate = 0.25}(123), 0.25);
}

TEST(Schedule, WarmUp) {
  const Schedule schedule = warm_up(9, Cosine{.rate = 1, .steps = 10});
  EXPECT_EQ(schedule(0), 0.1);
  EXPECT_EQ(schedule(1), 0.2);
  EXPECT_EQ(schedule(8), 0.9);
  EXPECT_EQ(schedule(9), 1);
  EXPECT_EQ(schedule(10), (Cosine{.rate = 1, .steps = 10}(1)));
  EXPECT_EQ(schedule(19), 0);
  EXPECT_EQ(warm_up(0, Constant{.rate = 2})(0), 2);
}

TEST(Schedule, OneAfterAnother) {
  const Schedule schedule =
      sequence({{Constant{.rate = 1}, 3},
                {Linear{.rate = 1, .last = 0, .steps = 2}, 2},
                {[](Index step) { return 10 + static_cast<double>(step); }, -1}});  // not read
  const double expected[] = {1, 1, 1, 1, 0.5, 10, 11, 12};
  for (Index step = 0; step < 8; ++step) EXPECT_EQ(schedule(step), expected[step]) << step;
}

TEST(Schedule, RestartsThatGrowBeyondAllStepsEnd) {
  constexpr Index last = std::numeric_limits<Index>::max();
  const Cosine far{.rate = 1, .steps = 1, .restarts = true, .growth = Index{1} << 40};
  EXPECT_EQ(far(1), 1);
  EXPECT_LT(far(last), 1);
  EXPECT_GE((Cosine{.rate = 1, .steps = 3, .restarts = true, .growth = 2}(last)), 0);
}

TEST(Schedule, CosineOfItsOwn) {
  for (int i = 0; i <= 1000; ++i) {
    const double x = i / 1000.0;
    const long double exact = std::cos(3.14159265358979323846264L * static_cast<long double>(x));
    EXPECT_NEAR(detail::cos_pi(x), static_cast<double>(exact), 3e-16) << x;
  }
  EXPECT_EQ(detail::cos_pi(0), 1);
  EXPECT_EQ(detail::cos_pi(1), -1);
  EXPECT_EQ(detail::cos_pi(0.5), 0);
}

TEST(Schedule, RefusesLengthsThatMakeNoSense) {
  EXPECT_THROW((Cosine{.steps = 0}(0)), InvalidArgument);
  EXPECT_THROW((Cosine{.steps = 3, .restarts = true, .growth = 0}(9)), InvalidArgument);
  EXPECT_THROW((Linear{.steps = 0}(0)), InvalidArgument);
  EXPECT_THROW((Steps{.every = 0}(0)), InvalidArgument);
  EXPECT_THROW(warm_up(-1, Constant{}), InvalidArgument);
  EXPECT_THROW(sequence({}), InvalidArgument);
  EXPECT_THROW(sequence({{Constant{}, -1}, {Constant{}, 1}}), InvalidArgument);
}

TEST(Schedule, RefusesWhatHoldsNoFunction) {
  EXPECT_THROW(warm_up(3, {}), InvalidArgument);
  EXPECT_THROW(sequence({{Constant{}, 3}, {{}, 0}}), InvalidArgument);
  EXPECT_THROW(sequence({{{}, 3}, {Constant{}, 0}}), InvalidArgument);
}

TEST(Schedule, WhatWasForgottenOrExchangedIsRefused) {
  EXPECT_THROW(Cosine{.rate = 0.1}(0), InvalidArgument);
  EXPECT_THROW(Linear{.rate = 0.1}(0), InvalidArgument);
  EXPECT_THROW((Cosine{.rate = 1e-3, .least = 100, .steps = 5}(0)), InvalidArgument);
}

}  // namespace
}  // namespace heed
