// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/parallel.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/layers/parameters.hpp>

namespace heed {

/// The global norm of a model's gradients.
struct GradientNorm {
  double value = 0;      // root of the sum of squares over all parameters
  std::string infinite;  // name of the first parameter that makes the sum infinite or NaN, or empty
};

namespace detail {

/// The numbers of a parameter are taken in stretches of this many, the last one shorter: each is a
/// task for a thread and one part of a sum.
inline constexpr Index stretch_numbers = 16384;

/// Calls body(stretch, begin, end) for consecutive ranges of 0 … count - 1, on several threads
/// where there are more than one. The borders depend on `count` alone, and so do the bits of every
/// sum.
inline void for_each_stretch(Index count, FunctionRef<void(Index, Index, Index)> body) {
  constexpr Index stretch = stretch_numbers;
  const auto one = [&](Index at) { body(at, at * stretch, smaller(count, (at + 1) * stretch)); };
  const Index stretches = parts_of(count, stretch);
  if (stretches == 1) {
    one(0);
  } else if (stretches > 1) {
    parallel_for(stretches, one);
  }
}

/// Σ x² of every stretch, in double.
template <ModelScalar T>
std::vector<double> squares_of_stretches(const T* values, Index count) {
  std::vector<double> squares(static_cast<std::size_t>(parts_of(count, stretch_numbers)));
  const auto& kernels = simd::training_kernels<T>();
  for_each_stretch(count, [&](Index stretch, Index begin, Index end) {
    squares[static_cast<std::size_t>(stretch)] =
        kernels.sum_of_squares(values + begin, end - begin);
  });
  return squares;
}
#if !HEED_DEFINITIONS
extern template std::vector<double> squares_of_stretches(const float*, Index);
extern template std::vector<double> squares_of_stretches(const double*, Index);
#endif

/// Adds a parameter to a norm of which the root is not yet taken; `squares` are its stretches'.
void add_squares(GradientNorm& norm, std::string_view name, std::span<const double> squares);

}  // namespace detail

/// The global norm of gradients, summed in double in an order that no thread count changes.
template <HasMembers Model>
GradientNorm gradient_norm(const Model& gradients) {
  GradientNorm norm;
  for_each_parameter(
      [&](std::string_view name, const auto& gradient) {
        detail::add_squares(norm, name,
                            detail::squares_of_stretches(gradient.data(), gradient.size()));
      },
      gradients);
  norm.value = std::sqrt(norm.value);
  return norm;
}

/// Scales gradients down to a global norm of `most` where it is larger, and returns the norm from
/// before. Gradients whose norm is not finite stay as they are. Pascanu, Mikolov, Bengio 2013.
/// Throws InvalidArgument unless `most` is above 0.
template <HasMembers Model>
GradientNorm clip_gradient_norm(Model& gradients, double most) {
  if (!(most > 0)) throw_invalid_argument("clip_gradient_norm: ", most, ", expected above 0");
  GradientNorm norm = gradient_norm(gradients);
  if (!norm.infinite.empty() || norm.value <= most) return norm;
  const double factor = most / norm.value;
  for_each_parameter(
      [&](std::string_view, auto& gradient) {
        auto* values = gradient.data();
        detail::for_each_stretch(gradient.size(), [&](Index, Index begin, Index end) {
          for (Index i = begin; i < end; ++i) {
            using T = std::remove_reference_t<decltype(*values)>;
            values[i] = static_cast<T>(static_cast<double>(values[i]) * factor);
          }
        });
      },
      gradients);
  return norm;
}

/// Options of one step of an optimizer.
struct StepOptions {
  std::optional<double> learning_rate = {};  // instead of the optimizer's: from a schedule
  /// Gradients with a larger global norm are scaled down to this one.
  double max_gradient_norm = std::numeric_limits<double>::infinity();
  /// A factor on the gradients: 1 / parts where they were accumulated over several parts.
  double gradient_scale = 1;
  /// The norm of all gradients, where the optimizer has only some of them (docs/11).
  std::optional<GradientNorm> norm = {};
};

/// The result of one step of an optimizer.
struct StepReport {
  /// false: nothing was changed; the global norm, scaled and clipped, was not finite in the
  /// gradients' type.
  bool taken = true;
  double gradient_norm = 0;  // global, scaled, before clipping
  /// The first parameter with which the norm is not finite in double; else empty.
  std::string refused_by = {};
  double learning_rate = 0;  // that of this step
};

namespace detail {

/// The checked numbers of one step, ready for an optimizer's formulas.
struct PlannedStep {
  StepReport report;
  double gradient_factor = 1;  // scale and clipping in one
};

/// Whether a global norm, times the factor, is finite in the gradients' types. It asks the norm
/// alone, which ranks that hold parts of the gradients share.
template <class Model>
bool stays_finite(const Model& gradients, double norm, double factor) {
  bool finite = true;
  for_each_parameter(
      [&](std::string_view, const auto& gradient) {
        using T = std::remove_cvref_t<decltype(*gradient.data())>;
        const auto rounded = static_cast<double>(static_cast<T>(factor));
        finite = finite && std::isfinite(static_cast<T>(norm * rounded));
      },
      gradients);
  return finite;
}

/// The learning rate of a step. Throws InvalidArgument for options that no gradients go with.
double checked_rate(const char* caller, double learning_rate, const StepOptions& options);
/// The step that gradients of this norm allow; whether they stay finite is not yet asked.
PlannedStep allowed_step(double rate, const GradientNorm& norm, const StepOptions& options);

/// The step by these gradients, not taken where they do not stay finite. Throws as checked_rate.
template <class Model>
PlannedStep plan_step(const char* caller, double learning_rate, const Model& gradients,
                      const StepOptions& options) {
  const double rate = checked_rate(caller, learning_rate, options);
  const GradientNorm norm = options.norm ? *options.norm : gradient_norm(gradients);
  PlannedStep plan = allowed_step(rate, norm, options);
  plan.report.taken =
      plan.report.taken && stays_finite(gradients, norm.value, plan.gradient_factor);
  return plan;
}

/// Throws InvalidArgument for a setting outside [least, most), and so for NaN.
void check_setting(const char* caller, const char* name, double value, double least,
                   double most = std::numeric_limits<double>::infinity());
/// The steps of a run that goes on. Throws InvalidArgument for a number below 0.
Index checked_steps(const char* caller, Index steps);

/// What is not to be stepped: other types than the optimizer's, or a model alone.
template <class Gradients, class Model, class Weights>
concept OtherThan = !(std::is_convertible_v<Weights&, Model&> &&
                      std::is_convertible_v<const Gradients&, const Model&>);
template <class Model, class Weights>
StepReport refuse_step() {
  constexpr bool const_model = std::is_same_v<Weights, const Model>;
  static_assert(!const_model, "a step changes the model, which is const here");
  static_assert(const_model,
                "optimizer.step(model, gradients): the model and its gradients are of the type "
                "that the optimizer was made of, and zeros_like(model) makes gradients");
  return {};
}

}  // namespace detail

/// Options of Sgd.
struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0;
  double weight_decay = 0;  // added to the gradient, times the weight
  bool nesterov = false;
};

/// Stochastic gradient descent with momentum, as torch.optim.SGD computes it: v ← μ v + g,
/// w ← w − rate · v, or w − rate · (g + μ v) after Nesterov. Sutskever et al. 2013.
template <class Model>
class Sgd {
  static_assert(detail::expect_members<Model>());

 public:
  /// Throws InvalidArgument for settings below 0 or not finite, and for a momentum of 1 or more.
  explicit Sgd(const Model& model, const SgdOptions& options = {})
      : options_(options), velocity_(zeros_like(model)) {
    detail::check_setting("Sgd", "learning_rate", options.learning_rate, 0);
    detail::check_setting("Sgd", "momentum", options.momentum, 0, 1);
    detail::check_setting("Sgd", "weight_decay", options.weight_decay, 0);
  }
  template <class Rate>
  requires std::is_arithmetic_v<Rate>  // a template: `{}` is options
  Sgd(const Model& model, Rate rate) : Sgd(model, {.learning_rate = static_cast<double>(rate)}) {}

  const SgdOptions& options() const { return options_; }
  Index steps() const { return steps_; }
  /// Continues from a loaded checkpoint. Throws InvalidArgument for a number below 0.
  void set_steps(Index steps) { steps_ = detail::checked_steps("Sgd", steps); }
  /// The tensors that a checkpoint stores.
  static auto members(auto& optimizer) { return Members{member("velocity", optimizer.velocity_)}; }

  /// Moves the weights against the gradients. Gradients whose norm, scaled and clipped, is not
  /// finite in their type change nothing; the report says so. Throws, before the first write,
  /// ShapeError when shapes differ, and InvalidArgument for a learning rate that is negative or not
  /// finite, a max_gradient_norm that is not above 0, a gradient_scale that is not finite, and
  /// gradients that are the model.
  StepReport step(Model& model, const Model& gradients, const StepOptions& options = {}) {
    detail::expect_apart(model, gradients);
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
  template <class Weights, detail::OtherThan<Model, Weights> Gradients>
  StepReport step(Weights&, const Gradients&, const StepOptions& = {}) {
    return detail::refuse_step<Model, Weights>();
  }
  template <class Weights>
  StepReport step(Weights&, const StepOptions& = {}) {
    return detail::refuse_step<Model, Weights>();
  }

 private:
  template <class T>
  void update(T* weights, const T* gradient, T* velocity, Index count,
              const detail::PlannedStep& plan) const {
    const simd::SgdUpdate<T> update{.factor = static_cast<T>(plan.gradient_factor),
                                    .decay = static_cast<T>(options_.weight_decay),
                                    .momentum = static_cast<T>(options_.momentum),
                                    .rate = static_cast<T>(plan.report.learning_rate),
                                    .nesterov = options_.nesterov};
    const auto& kernels = simd::training_kernels<T>();
    detail::for_each_stretch(count, [&](Index, Index begin, Index end) {
      kernels.sgd(update, weights + begin, gradient + begin, velocity + begin, end - begin);
    });
  }

  SgdOptions options_;
  Model velocity_;
  Index steps_ = 0;
};

/// Options of Adam.
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;    // of the mean of gradients
  double beta2 = 0.999;  // of the mean of their squares
  double epsilon = 1e-8;
  double weight_decay = 0;
  /// Whether the decay is applied to the weights directly (AdamW) or added to the gradient.
  bool decoupled = false;
  /// Whether parameters of rank 1 (biases, norms) decay too, as they do in PyTorch by default.
  bool decay_vectors = true;
};

namespace detail {

/// One step of Adam, after `steps` others, for a parameter.
template <ModelScalar T>
void adam_update(const AdamOptions& options, bool decays, Index steps, const PlannedStep& plan,
                 T* weights, const T* gradient, T* first, T* second, Index count) {
  const double corrected1 = 1 - whole_power(options.beta1, steps + 1);
  const double corrected2 = 1 - whole_power(options.beta2, steps + 1);
  const double decay = decays ? options.weight_decay : 0;
  const simd::AdamUpdate<T> numbers{
      .factor = static_cast<T>(plan.gradient_factor),
      .added = static_cast<T>(options.decoupled ? 0 : decay),
      .keep1 = static_cast<T>(1 - options.beta1),
      .beta2 = static_cast<T>(options.beta2),
      .keep2 = static_cast<T>(1 - options.beta2),
      .inverse_root = static_cast<T>(1 / std::sqrt(corrected2)),
      .epsilon = static_cast<T>(options.epsilon),
      .rate = static_cast<T>(plan.report.learning_rate / corrected1),
      .shrink = static_cast<T>(options.decoupled ? 1 - plan.report.learning_rate * decay : 1)};
  const auto& kernels = simd::training_kernels<T>();
  for_each_stretch(count, [&](Index, Index begin, Index end) {
    kernels.adam(numbers, weights + begin, gradient + begin, first + begin, second + begin,
                 end - begin);
  });
}
#if !HEED_DEFINITIONS
extern template void adam_update(const AdamOptions&, bool, Index, const PlannedStep&, float*,
                                 const float*, float*, float*, Index);
extern template void adam_update(const AdamOptions&, bool, Index, const PlannedStep&, double*,
                                 const double*, double*, double*, Index);
#endif

}  // namespace detail

/// Adam as torch.optim.Adam computes it. Kingma and Ba 2015.
template <class Model>
class Adam {
  static_assert(detail::expect_members<Model>());

 public:
  /// Throws InvalidArgument for settings below 0 or not finite, and for betas of 1 or more.
  explicit Adam(const Model& model, const AdamOptions& options = {})
      : options_(options), first_moment_(zeros_like(model)), second_moment_(first_moment_) {
    detail::check_setting(name(), "learning_rate", options.learning_rate, 0);
    detail::check_setting(name(), "beta1", options.beta1, 0, 1);
    detail::check_setting(name(), "beta2", options.beta2, 0, 1);
    detail::check_setting(name(), "epsilon", options.epsilon, 0);
    detail::check_setting(name(), "weight_decay", options.weight_decay, 0);
  }
  template <class Rate>
  requires std::is_arithmetic_v<Rate>  // a template: `{}` is options
  Adam(const Model& model, Rate rate) : Adam(model, {.learning_rate = static_cast<double>(rate)}) {}

  const AdamOptions& options() const { return options_; }
  Index steps() const { return steps_; }
  /// Continues from a loaded checkpoint. Throws InvalidArgument for a number below 0.
  void set_steps(Index steps) { steps_ = detail::checked_steps(name(), steps); }
  /// The tensors that a checkpoint stores.
  static auto members(auto& optimizer) {
    return Members{member("first_moment", optimizer.first_moment_),
                   member("second_moment", optimizer.second_moment_)};
  }

  /// Moves the weights against the gradients. Gradients whose norm, scaled and clipped, is not
  /// finite in their type change nothing; the report says so. Throws, before the first write,
  /// ShapeError when shapes differ, and InvalidArgument for a learning rate that is negative or not
  /// finite, a max_gradient_norm that is not above 0, a gradient_scale that is not finite, and
  /// gradients that are the model.
  StepReport step(Model& model, const Model& gradients, const StepOptions& options = {}) {
    detail::expect_apart(model, gradients);
    const auto plan = detail::plan_step(name(), options_.learning_rate, gradients, options);
    if (!plan.report.taken) return plan.report;
    for_each_parameter(
        [&](std::string_view, auto& weights, const auto& gradient, auto& first, auto& second) {
          const bool decays = options_.decay_vectors || weights.rank() > 1;
          detail::adam_update(options_, decays, steps_, plan, weights.data(), gradient.data(),
                              first.data(), second.data(), weights.size());
        },
        model, gradients, first_moment_, second_moment_);
    ++steps_;
    return plan.report;
  }
  template <class Weights, detail::OtherThan<Model, Weights> Gradients>
  StepReport step(Weights&, const Gradients&, const StepOptions& = {}) {
    return detail::refuse_step<Model, Weights>();
  }
  template <class Weights>
  StepReport step(Weights&, const StepOptions& = {}) {
    return detail::refuse_step<Model, Weights>();
  }

 private:
  const char* name() const { return options_.decoupled ? "AdamW" : "Adam"; }
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

/// Adam with weight decay applied to the weights directly, as torch.optim.AdamW computes it.
/// Loshchilov and Hutter 2019.
template <class Model>
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
  template <class Rate>
  requires std::is_arithmetic_v<Rate> AdamW(const Model& model, Rate rate)
      : AdamW(model, {.learning_rate = static_cast<double>(rate)}) {}
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/training/detail/optimizers.inl>
#endif
