// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// The learning rate of every step, counted from 0: a pure function of the step, so that a
/// checkpoint needs nothing but the step. Any callable will do: the types below, their
/// combinations, or a lambda.
using Schedule = std::function<double(Index step)>;

namespace detail {

/// cos(π x) for x in [0, 1], the same bits with every math library; within 2 ULP of 1.
double cos_pi(double x);

void check_steps(const char* what, Index steps, Index least);

}  // namespace detail

/// They throw InvalidArgument when they are called with `steps`, `growth` or `every` below 1, and
/// with a `least` above `rate`.
namespace schedules {

/// One rate for all steps.
struct Constant {
  double rate = 1e-3;
  double operator()(Index) const { return rate; }
};

/// Falls from `rate` to `least` along half a cosine over `steps` steps, and stays there. With
/// restarts it begins again instead, each time `growth` times as long. Loshchilov and Hutter 2017;
/// CosineAnnealingLR and CosineAnnealingWarmRestarts of PyTorch.
struct Cosine {
  double rate = 1e-3;
  double least = 0;
  Index steps = 0;  // to be given
  bool restarts = false;
  Index growth = 1;

  double operator()(Index step) const;
};

/// Falls from `rate` to `last` along a straight line over `steps` steps, and stays there.
struct Linear {
  double rate = 1e-3;
  double last = 0;
  Index steps = 0;  // to be given

  double operator()(Index step) const;
};

/// `rate`, multiplied by `factor` after every `every` steps. StepLR of PyTorch.
struct Steps {
  double rate = 1e-3;
  double factor = 0.1;
  Index every = 1;

  double operator()(Index step) const;
};

/// Linear warm-up over `steps` steps, then `then` from its own step 0. Step s has (s + 1) / (steps
/// + 1) of the first rate of `then`, so that no step is lost on a rate of 0. Throws InvalidArgument
/// for steps below 0 and an empty schedule. Goyal et al. 2017.
Schedule warm_up(Index steps, Schedule then);

/// Schedules one after another as pairs {schedule, number of steps}, each counting from its own
/// step 0. The last one has no end, and its number is not read. Throws InvalidArgument for no
/// pairs, an empty schedule, and a number below 0.
Schedule sequence(std::vector<std::pair<Schedule, Index>> parts);

}  // namespace schedules

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/training/detail/schedule.inl>
#endif
