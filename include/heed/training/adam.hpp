// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string_view>
#include <tuple>

#include <heed/layers/parameters.hpp>
#include <heed/simd/training_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/training/detail/whole_power.hpp>
#include <heed/training/optimizer_step.hpp>

namespace heed {

/// Options of Adam.
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;    // of the mean of gradients
  double beta2 = 0.999;  // of the mean of their squares
  double epsilon = 1e-8;
  double weight_decay = 0;
  /// Decay apart from the gradient (AdamW), or added to it.
  bool decoupled = false;
  /// Whether parameters of rank 1 (biases, norms) decay too; PyTorch decays what it is given.
  bool decay_vectors = true;
};

/// Adam as torch.optim.Adam computes it. Kingma and Ba 2015.
template <HasMembers Model>
class Adam {
 public:
  /// Throws ShapeError for settings that are negative and betas of 1 or more.
  explicit Adam(const Model& model, const AdamOptions& options = {})
      : options_(options), first_moment_(zeros_like(model)), second_moment_(first_moment_) {
    detail::check_setting("Adam", "learning_rate", options.learning_rate, 0);
    detail::check_setting("Adam", "beta1", options.beta1, 0, 1);
    detail::check_setting("Adam", "beta2", options.beta2, 0, 1);
    detail::check_setting("Adam", "epsilon", options.epsilon, 0);
    detail::check_setting("Adam", "weight_decay", options.weight_decay, 0);
  }

  const AdamOptions& options() const { return options_; }
  Index steps() const { return steps_; }
  /// For a checkpoint that is loaded.
  void set_steps(Index steps) { steps_ = steps; }
  /// What a checkpoint holds.
  static auto members(auto& optimizer) {
    return std::tuple{member("first_moment", optimizer.first_moment_),
                      member("second_moment", optimizer.second_moment_)};
  }

  /// Moves the weights along the gradients. Gradients that are not finite change nothing, which the
  /// report tells. Throws ShapeError, before the first write, when shapes differ.
  StepReport step(Model& model, const Model& gradients, const StepOptions& options = {}) {
    const auto plan = detail::plan_step("Adam", options_.learning_rate, gradients, options);
    if (!plan.report.taken) return plan.report;
    for_each_parameter(
        [&](std::string_view, auto& weights, const auto& gradient, auto& first, auto& second) {
          const bool decays = options_.decay_vectors || weights.rank() > 1;
          update(weights.data(), gradient.data(), first.data(), second.data(), weights.size(), plan,
                 decays ? options_.weight_decay : 0);
        },
        model, gradients, first_moment_, second_moment_);
    ++steps_;
    return plan.report;
  }

 private:
  template <class T>
  void update(T* weights, const T* gradient, T* first, T* second, Index count,
              const detail::PlannedStep& plan, double weight_decay) const {
    const double corrected1 = 1 - detail::whole_power(options_.beta1, steps_ + 1);
    const double corrected2 = 1 - detail::whole_power(options_.beta2, steps_ + 1);
    const simd::AdamUpdate<T> numbers{
        .factor = static_cast<T>(plan.gradient_factor),
        .added = static_cast<T>(options_.decoupled ? 0 : weight_decay),
        .keep1 = static_cast<T>(1 - options_.beta1),
        .beta2 = static_cast<T>(options_.beta2),
        .keep2 = static_cast<T>(1 - options_.beta2),
        .inverse_root = static_cast<T>(1 / std::sqrt(corrected2)),
        .epsilon = static_cast<T>(options_.epsilon),
        .rate = static_cast<T>(plan.learning_rate / corrected1),
        .shrink = static_cast<T>(options_.decoupled ? 1 - plan.learning_rate * weight_decay : 1)};
    const auto& kernels = simd::training_kernels<T>();
    detail::for_each_stretch(count, [&](Index, Index begin, Index end) {
      kernels.adam(numbers, weights + begin, gradient + begin, first + begin, second + begin,
                   end - begin);
    });
  }

  AdamOptions options_;
  Model first_moment_, second_moment_;
  Index steps_ = 0;
};

/// Options of AdamW: Adam's, with PyTorch's default decay.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  bool decay_vectors = true;
};

/// Adam with weight decay apart from the gradient, as torch.optim.AdamW computes it. Loshchilov and
/// Hutter 2019.
template <HasMembers Model>
class AdamW : public Adam<Model> {
 public:
  explicit AdamW(const Model& model, const AdamWOptions& options = {})
      : Adam<Model>(model, {.learning_rate = options.learning_rate,
                            .beta1 = options.beta1,
                            .beta2 = options.beta2,
                            .epsilon = options.epsilon,
                            .weight_decay = options.weight_decay,
                            .decoupled = true,
                            .decay_vectors = options.decay_vectors}) {}
};

}  // namespace heed
