// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/random.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// A tensor that a loss depends on, and the gradient to check for it.
struct CheckedGradient {
  std::string name;
  std::span<double> values;
  std::span<const double> gradient;
};

/// Options of gradient_check.
struct GradientCheckOptions {
  double step = 3e-4;  // of the finite differences
  Index most = 0;      // elements checked per tensor, evenly spaced; 0: all
};

/// The result of a gradient check: the element with the largest error.
struct GradientCheckReport {
  double worst = 0;   // |claimed − measured| over the norm of all measured gradients
  std::string name;   // of the tensor
  Index element = 0;  // in row-major order
  double claimed = 0, measured = 0;
  double norm = 0;
  Index checked = 0;  // elements
};

/// Compares gradients with five-point finite differences of `loss`, whose error falls with the
/// fourth power of the step: correct gradients of a smooth function agree to about 1e-11. Values
/// are changed and restored. NaN anywhere makes `worst` NaN. Throws ShapeError when the numbers of
/// values and gradients differ.
GradientCheckReport gradient_check(std::span<const CheckedGradient> tensors,
                                   FunctionRef<double()> loss,
                                   const GradientCheckOptions& options = {});

namespace detail {

/// The parameters of a model with their gradients, by name.
template <class Model>
std::vector<CheckedGradient> checked_gradients(Model& model, const Model& gradients) {
  std::vector<CheckedGradient> tensors;
  for_each_parameter(
      [&](std::string_view name, auto& parameter, const auto& gradient) {
        const auto size = static_cast<std::size_t>(parameter.size());
        tensors.push_back({std::string(name), {parameter.data(), size}, {gradient.data(), size}});
      },
      model, gradients);
  return tensors;
}

}  // namespace detail

/// Checks all parameters of a model in double: `loss()` evaluates the model, `gradients` come from
/// its backward pass.
template <HasMembers Model>
GradientCheckReport gradient_check(Model& model, const Model& gradients, FunctionRef<double()> loss,
                                   const GradientCheckOptions& options = {}) {
  return gradient_check(
      std::span<const CheckedGradient>(detail::checked_gradients(model, gradients)), loss, options);
}

/// Checks a layer in double through forward(input, more..., saved) and backward(grad_out, saved,
/// gradients), and its input under the name "input". The loss is a random weighted sum of the
/// outputs.
template <HasMembers Layer, std::size_t Rank, class... More>
GradientCheckReport gradient_check_layer(Layer& layer, Tensor<double, Rank> input, Random random,
                                         const GradientCheckOptions& options, const More&... more) {
  typename Layer::Saved saved;
  const auto out = layer.forward(input, more..., saved);
  auto mixture = out;
  for (double& share : mixture) share = random.normal();
  const auto loss = [&] {
    typename Layer::Saved unused;
    const auto result = layer.forward(input, more..., unused);
    double sum = 0;
    for (Index i = 0; i < result.size(); ++i) sum += result.data()[i] * mixture.data()[i];
    return sum;
  };
  Layer gradients = zeros_like(layer);
  const Tensor<double, Rank> grad_input = layer.backward(mixture, saved, gradients);
  auto tensors = detail::checked_gradients(layer, gradients);
  const auto size = static_cast<std::size_t>(input.size());
  tensors.push_back({"input", {input.data(), size}, {grad_input.data(), size}});
  return gradient_check(std::span<const CheckedGradient>(tensors), loss, options);
}

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/training/detail/gradient_check.inl>
#endif
