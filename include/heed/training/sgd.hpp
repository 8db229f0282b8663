// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <tuple>

#include <heed/layers/parameters.hpp>
#include <heed/training/optimizer_step.hpp>

namespace heed {

/// Options of Sgd.
struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0;
  double weight_decay = 0;  // added to the gradient, times the weight
  bool nesterov = false;
};

/// Stochastic gradient descent with momentum, as torch.optim.SGD computes it: v ← μ v + g,
/// w ← w − rate · v, or w − rate · (g + μ v) after Nesterov. Sutskever et al. 2013.
template <HasMembers Model>
class Sgd {
 public:
  /// Throws ShapeError for settings that are negative or a momentum of 1 or more.
  explicit Sgd(const Model& model, const SgdOptions& options = {})
      : options_(options), velocity_(zeros_like(model)) {
    detail::check_setting("Sgd", "learning_rate", options.learning_rate, 0);
    detail::check_setting("Sgd", "momentum", options.momentum, 0, 1);
    detail::check_setting("Sgd", "weight_decay", options.weight_decay, 0);
  }

  const SgdOptions& options() const { return options_; }
  Index steps() const { return steps_; }
  /// For a checkpoint that is loaded.
  void set_steps(Index steps) { steps_ = steps; }
  /// What a checkpoint holds.
  static auto members(auto& optimizer) {
    return std::tuple{member("velocity", optimizer.velocity_)};
  }

  /// Moves the weights along the gradients. Gradients that are not finite change nothing, which the
  /// report tells. Throws ShapeError, before the first write, when shapes differ.
  StepReport step(Model& model, const Model& gradients, const StepOptions& options = {}) {
    const auto plan = detail::plan_step("Sgd", options_.learning_rate, gradients, options);
    if (!plan.report.taken) return plan.report;
    for_each_parameter(
        [&](std::string_view, auto& weights, const auto& gradient, auto& velocity) {
          update(weights.data(), gradient.data(), velocity.data(), weights.size(), plan);
        },
        model, gradients, velocity_);
    ++steps_;
    return plan.report;
  }

 private:
  template <class T>
  void update(T* weights, const T* gradient, T* velocity, Index count,
              const detail::PlannedStep& plan) const {
    const auto rate = static_cast<T>(plan.learning_rate);
    const auto factor = static_cast<T>(plan.gradient_factor);
    const auto momentum = static_cast<T>(options_.momentum);
    const auto decay = static_cast<T>(options_.weight_decay);
    const bool nesterov = options_.nesterov;
    detail::for_each_stretch(count, [&](Index, Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const T slope = factor * gradient[i] + decay * weights[i];
        velocity[i] = momentum * velocity[i] + slope;
        weights[i] -= rate * (nesterov ? slope + momentum * velocity[i] : velocity[i]);
      }
    });
  }

  SgdOptions options_;
  Model velocity_;
  Index steps_ = 0;
};

}  // namespace heed
