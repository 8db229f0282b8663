// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <ctime>
#include <limits>
#include <string>
#include <type_traits>

#include <heed/core/error.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/training/optimizer_step.hpp>
#include <heed/training/schedule.hpp>

namespace heed {

/// What a part of a step cost: the loss of a batch, and how many tokens it was the mean of.
struct BatchLoss {
  double loss = 0;
  Index tokens = 0;
};

/// What a training loop tells after every step.
struct StepInfo {
  Index step = 0;  // counted from 0
  double loss = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;  // of this step
  double gradient_norm = 0;      // before clipping
  bool taken = true;             // false: gradients were not finite, nothing was changed
  std::string refused_by = {};   // then the first parameter whose gradient was not
};

/// Options of train.
struct TrainOptions {
  Index steps = 1000;
  Index first_step = 0;  // after a checkpoint: how many were taken before
  Schedule schedule = schedules::Constant{};
  double max_gradient_norm = std::numeric_limits<double>::infinity();
  Index accumulate = 1;  // batches a step
};

namespace detail {

/// Seconds of a clock that only goes forward. Not <chrono>: that is a tenth of what heed.hpp takes
/// to compile.
inline double seconds_now() {
  std::timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace detail

/// The loop of training: `compute(batch, gradients)` runs batch number `batch` forward and
/// backward, adds to `gradients` and returns a BatchLoss; `on_step(info)` hears of every step and
/// may return false to end the loop. Returns the number of steps taken so far, `first_step`
/// included. It is short so that it can be copied where it does not fit.
template <HasMembers Model, class Optimizer, class Compute, class OnStep>
Index train(Model& model, Optimizer& optimizer, const TrainOptions& options, Compute&& compute,
            OnStep&& on_step) {
  if (options.accumulate < 1) throw_invalid_argument("train: accumulate ", options.accumulate);
  Model gradients = zeros_like(model);
  Index step = options.first_step;
  while (step < options.steps) {
    const double begin = detail::seconds_now();
    StepInfo info{.step = step, .learning_rate = options.schedule(step)};
    Index tokens = 0;
    set_zero(gradients);
    for (Index part = 0; part < options.accumulate; ++part) {
      const BatchLoss batch = compute(step * options.accumulate + part, gradients);
      info.loss += batch.loss / static_cast<double>(options.accumulate);
      tokens += batch.tokens;
    }
    const StepReport report =
        optimizer.step(model, gradients,
                       {.learning_rate = info.learning_rate,
                        .max_gradient_norm = options.max_gradient_norm,
                        .gradient_scale = 1 / static_cast<double>(options.accumulate)});
    info.gradient_norm = report.gradient_norm;
    info.taken = report.taken;
    info.refused_by = report.refused_by;
    info.tokens_per_second = static_cast<double>(tokens) / (detail::seconds_now() - begin);
    ++step;
    if constexpr (std::is_void_v<std::invoke_result_t<OnStep&, const StepInfo&>>) {
      on_step(info);
    } else if (!on_step(info)) {
      break;
    }
  }
  return step;
}

}  // namespace heed
