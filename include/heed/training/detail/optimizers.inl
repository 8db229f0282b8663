// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/training/optimizers.hpp>, which includes this file.

#include <cmath>
#include <span>
#include <string>
#include <string_view>

namespace heed::detail {

HEED_INLINE void add_squares(GradientNorm& norm, std::string_view name,
                             std::span<const double> squares) {
  double sum = 0;
  for (const double part : squares) sum += part;
  norm.value += sum;
  if (!std::isfinite(norm.value) && norm.infinite.empty()) norm.infinite = std::string(name);
}

HEED_INLINE double checked_rate(const char* caller, double learning_rate,
                                const StepOptions& options) {
  const double rate = options.learning_rate.value_or(learning_rate);
  if (!std::isfinite(static_cast<float>(rate)) || rate < 0) {
    throw_invalid_argument(caller, ": learning rate ", rate,
                           ", expected a finite number, 0 or more");
  }
  if (!(options.max_gradient_norm > 0) ||
      !std::isfinite(static_cast<float>(options.gradient_scale))) {
    throw_invalid_argument(caller, ": max_gradient_norm ", options.max_gradient_norm,
                           ", expected above 0; gradient_scale ", options.gradient_scale,
                           ", expected a finite number");
  }
  return rate;
}

HEED_INLINE PlannedStep allowed_step(double rate, const GradientNorm& norm,
                                     const StepOptions& options) {
  PlannedStep plan;
  plan.gradient_factor = options.gradient_scale;
  plan.report.learning_rate = rate;
  plan.report.gradient_norm = norm.value * std::fabs(options.gradient_scale);
  if (!std::isfinite(plan.report.gradient_norm)) {
    plan.report.taken = false;
    plan.report.refused_by = norm.infinite;
  } else if (plan.report.gradient_norm > options.max_gradient_norm) {
    plan.gradient_factor *= options.max_gradient_norm / plan.report.gradient_norm;
  }
  return plan;
}

HEED_INLINE void check_setting(const char* caller, const char* name, double value, double least,
                               double most) {
  if (value >= least && value < most) return;
  throw_invalid_argument(caller, ": ", name, " ", value, ", expected ", least, " or more",
                         most < 2 ? " and below 1" : ", and finite");
}

HEED_INLINE Index checked_steps(const char* caller, Index steps) {
  if (steps < 0) throw_invalid_argument(caller, ": ", steps, " steps taken, expected 0 or more");
  return steps;
}

}  // namespace heed::detail
