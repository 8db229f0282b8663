// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <optional>
#include <string>

#include <heed/core/error.hpp>
#include <heed/training/gradient_norm.hpp>

namespace heed {

/// What one step of an optimizer may be told.
struct StepOptions {
  std::optional<double> learning_rate = {};  // in place of the optimizer's own: a schedule's
  /// Gradients of a larger global norm are scaled down to it.
  double max_gradient_norm = std::numeric_limits<double>::infinity();
  /// Gradients count so many times: 1 / parts where they were accumulated over parts.
  double gradient_scale = 1;
};

/// What became of one step of an optimizer.
struct StepReport {
  bool taken = true;            // false: nothing was changed, the gradients were not finite
  double gradient_norm = 0;     // global, scaled, before clipping
  std::string refused_by = {};  // the first parameter whose gradient holds NaN or an infinity
};

namespace detail {

/// What the formulas of an optimizer take from the options, checked.
struct PlannedStep {
  StepReport report;
  double learning_rate = 0;
  double gradient_factor = 1;  // scale and clipping in one
};

template <class Model>
PlannedStep plan_step(const char* caller, double learning_rate, const Model& gradients,
                      const StepOptions& options) {
  PlannedStep plan;
  plan.learning_rate = options.learning_rate.value_or(learning_rate);
  if (!is_finite(plan.learning_rate) || plan.learning_rate < 0) {
    throw_invalid_argument(caller, ": learning rate ", plan.learning_rate,
                           ", expected a finite number, 0 or more");
  }
  if (!(options.max_gradient_norm > 0) || !is_finite(options.gradient_scale)) {
    throw_invalid_argument(caller, ": max_gradient_norm ", options.max_gradient_norm,
                           ", gradient_scale ", options.gradient_scale);
  }
  GradientNorm norm = gradient_norm(gradients);
  plan.gradient_factor = options.gradient_scale;
  plan.report.gradient_norm = norm.value * std::fabs(options.gradient_scale);
  if (!is_finite(plan.report.gradient_norm)) {
    plan.report.taken = false;
    plan.report.refused_by = norm.infinite;
  } else if (plan.report.gradient_norm > options.max_gradient_norm) {
    plan.gradient_factor *= options.max_gradient_norm / plan.report.gradient_norm;
  }
  return plan;
}

/// Refuses settings outside [least, most).
inline void check_setting(const char* caller, const char* name, double value, double least,
                          double most = std::numeric_limits<double>::infinity()) {
  if (value >= least && value < most) return;
  throw_invalid_argument(caller, ": ", name, " ", value, ", expected ", least, " or more",
                         most < 2 ? " and below 1" : "");
}

}  // namespace detail

}  // namespace heed
