// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/parallel.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/simd/training_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>

namespace heed {

namespace detail {

/// Calls body(stretch, begin, end) for stretches of 0 … count - 1 whose borders depend on `count`
/// alone, on several threads when there is more than one.
inline void for_each_stretch(Index count, FunctionRef<void(Index, Index, Index)> body) {
  constexpr Index stretch = 16384;
  const auto one = [&](Index at) { body(at, at * stretch, std::min(count, (at + 1) * stretch)); };
  const Index stretches = (count + stretch - 1) / stretch;
  if (stretches == 1) {
    one(0);
  } else if (stretches > 1) {
    parallel_for(stretches, one);
  }
}

/// Σ x² in double, in an order that depends on `count` alone.
template <class T>
double sum_of_squares(const T* values, Index count) {
  // At most one for every stretch of for_each_stretch.
  std::vector<double> partial(static_cast<std::size_t>(count / 16384 + 1), 0.0);
  const auto& kernels = simd::training_kernels<T>();
  for_each_stretch(count, [&](Index stretch, Index begin, Index end) {
    partial[static_cast<std::size_t>(stretch)] =
        kernels.sum_of_squares(values + begin, end - begin);
  });
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

inline bool is_finite(double value) { return value - value == 0; }

}  // namespace detail

/// How large gradients are.
struct GradientNorm {
  double value = 0;      // root of the sum of squares over all parameters
  std::string infinite;  // the first parameter whose gradient holds NaN or an infinity; else empty
};

/// The global norm of gradients, summed in double in an order that no thread count changes.
template <HasMembers Model>
GradientNorm gradient_norm(const Model& gradients) {
  GradientNorm norm;
  for_each_parameter(
      [&](std::string_view name, const auto& gradient) {
        const double sum = detail::sum_of_squares(gradient.data(), gradient.size());
        if (!detail::is_finite(sum) && norm.infinite.empty()) norm.infinite = std::string(name);
        norm.value += sum;
      },
      gradients);
  norm.value = std::sqrt(norm.value);
  return norm;
}

/// Scales gradients down to a global norm of `most` where theirs is larger, and returns theirs.
/// Gradients whose norm is not finite are left as they are. Pascanu, Mikolov, Bengio 2013. Throws
/// InvalidArgument unless `most` is above 0.
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

}  // namespace heed
