// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// The learning rate of every step, counted from 0: a pure function of the step, so that a
/// checkpoint needs nothing but the step. Any callable will do: the types below, their
/// combinations, or a lambda.
using Schedule = std::function<double(Index step)>;

namespace detail {

/// cos(π x) for x in [0, 1], the same bits with every math library; within 2 ULP of 1.
inline double cos_pi(double x) {
  const bool mirrored = x > 0.5;
  const double y = mirrored ? 1 - x : x;  // in [0, 1/2], exact
  constexpr double pi = 3.14159265358979323846;
  double value = 0;
  if (y <= 0.25) {
    const double t = pi * y, square = product(t, t);
    constexpr double terms[] = {1.0,
                                -1.0 / 2,
                                1.0 / 24,
                                -1.0 / 720,
                                1.0 / 40320,
                                -1.0 / 3628800,
                                1.0 / 479001600,
                                -1.0 / 87178291200.0,
                                1.0 / 20922789888000.0};
    value = polynomial(terms, square);
  } else {
    const double t = pi * (0.5 - y), square = product(t, t);
    constexpr double terms[] = {
        1.0,          -1.0 / 6,        1.0 / 120,          -1.0 / 5040,
        1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0};
    value = product(t, polynomial(terms, square));
  }
  return mirrored ? -value : value;
}

inline void check_steps(const char* what, Index steps, Index least) {
  if (steps < least)
    throw_invalid_argument(what, ": ", steps, " steps, expected ", least, " or more");
}

}  // namespace detail

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
  Index steps = 1;
  bool restarts = false;
  Index growth = 1;

  double operator()(Index step) const {
    detail::check_steps("Cosine", steps, 1);
    detail::check_steps("Cosine growth", growth, 1);
    Index length = steps;
    if (restarts && growth == 1) step %= length;
    while (restarts && step >= length) {
      step -= length;
      length *= growth;
    }
    const double share =
        step >= length ? 1 : static_cast<double>(step) / static_cast<double>(length);
    return least + (rate - least) * (1 + detail::cos_pi(share)) / 2;
  }
};

/// Falls from `rate` to `last` along a straight line over `steps` steps, and stays there.
struct Linear {
  double rate = 1e-3;
  double last = 0;
  Index steps = 1;

  double operator()(Index step) const {
    detail::check_steps("Linear", steps, 1);
    if (step >= steps) return last;
    return rate + (last - rate) * (static_cast<double>(step) / static_cast<double>(steps));
  }
};

/// `rate`, multiplied by `factor` after every `every` steps. StepLR of PyTorch.
struct Steps {
  double rate = 1e-3;
  double factor = 0.1;
  Index every = 1;

  double operator()(Index step) const {
    detail::check_steps("Steps", every, 1);
    return rate * detail::whole_power(factor, step / every);
  }
};

/// Linear warm-up over `steps` steps, then `then` from its own step 0. Step s has (s + 1) / (steps
/// + 1) of the first rate of `then`, so that no step is lost on a rate of 0. Goyal et al. 2017.
inline Schedule warm_up(Index steps, Schedule then) {
  detail::check_steps("warm_up", steps, 0);
  return [steps, then = std::move(then)](Index step) {
    if (step >= steps) return then(step - steps);
    return then(0) * (static_cast<double>(step + 1) / static_cast<double>(steps + 1));
  };
}

/// Schedules one after another as pairs {schedule, number of steps}, each counting from its own
/// step 0. The last one has no end.
inline Schedule sequence(std::vector<std::pair<Schedule, Index>> parts) {
  if (parts.empty()) throw_invalid_argument("sequence: no schedules");
  for (const auto& part : parts) detail::check_steps("sequence", part.second, 0);
  return [parts = std::move(parts)](Index step) {
    std::size_t at = 0;
    for (; at + 1 < parts.size() && step >= parts[at].second; ++at) step -= parts[at].second;
    return parts[at].first(step);
  };
}

}  // namespace schedules

}  // namespace heed
