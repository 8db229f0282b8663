// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "support/backward_cases.hpp"
#include "support/score_mods.hpp"

namespace heed::test {

/// Gradients of everything that a call under changes of scores depends on.
template <class T>
struct ChangedGradients {
  ChangedGradients(const Shape& shape, const Changes<T>& changes)
      : tensors(shape),
        slopes(changes.slopes.size(), std::numeric_limits<T>::quiet_NaN()),
        sinks({shape.heads}),
        relative(changes.relative_table.extents()),
        bias(changes.bias_table.extents()) {
    std::fill(sinks.begin(), sinks.end(), std::numeric_limits<T>::quiet_NaN());
    std::fill(relative.begin(), relative.end(), std::numeric_limits<T>::quiet_NaN());
    std::fill(bias.begin(), bias.end(), std::numeric_limits<T>::quiet_NaN());
  }

  /// What is there to ask for under these changes.
  GradientOptions<T> options(unsigned which, const Loss<T>& loss) {
    GradientOptions<T> result{.grad_log_sum_exp = loss.grad_lse};
    if (which & Changes<T>::bias) result.grad_bias = bias;
    if (which & Changes<T>::relative) result.grad_relative_bias = relative.view();
    if (which & Changes<T>::alibi) result.grad_alibi_slopes = slopes;
    if (which & Changes<T>::sinks) {
      result.grad_sinks = {sinks.data(), static_cast<std::size_t>(sinks.size())};
    }
    return result;
  }

  /// Calls visit(name, values, values of other) for all gradients there are.
  template <class Other, class Visit>
  void with(const Other& other, unsigned which, const Visit& visit) const {
    const auto numbers = [](const auto& tensor) {
      using Number = std::remove_cvref_t<decltype(*tensor.data())>;
      return std::vector<Number>(tensor.data(), tensor.data() + tensor.size());
    };
    visit("queries", numbers(tensors.queries), numbers(other.tensors.queries));
    visit("keys", numbers(tensors.keys), numbers(other.tensors.keys));
    visit("values", numbers(tensors.values), numbers(other.tensors.values));
    if (which & Changes<T>::bias) visit("bias", numbers(bias), numbers(other.bias));
    if (which & Changes<T>::relative) visit("relative", numbers(relative), numbers(other.relative));
    if (which & Changes<T>::alibi) visit("slopes", slopes, other.slopes);
    if (which & Changes<T>::sinks) visit("sinks", numbers(sinks), numbers(other.sinks));
  }

  Gradients<T> tensors;
  std::vector<T> slopes;
  Tensor<T, 1> sinks;
  Tensor<T, 2> relative;
  Tensor<T, 4> bias;
};

template <class T, class M>
ChangedGradients<T> fused_changed(const Shape& shape, const Inputs<T>& in, const Loss<T>& loss,
                                  const M& mask, const Changes<T>& changes, unsigned which) {
  const auto forward = fused(shape, in, mask, changes.options(which));
  ChangedGradients<T> result(shape, changes);
  attention_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
                     result.tensors.queries, result.tensors.keys, result.tensors.values,
                     changes.options(which), result.options(which, loss));
  return result;
}

/// The references, forward and backward.
template <class T, class M>
ChangedGradients<T> reference_modified(const Shape& shape, const Inputs<T>& in, const Loss<T>& loss,
                                       const M& mask, const Changes<T>& changes, unsigned which) {
  Result<T> forward(shape);
  auto options = changes.options(which);
  options.log_sum_exp = forward.lse;
  reference_attention(in.queries, in.keys, in.values, mask, forward.out, options);
  ChangedGradients<T> result(shape, changes);
  reference_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
                     result.tensors.queries, result.tensors.keys, result.tensors.values, options,
                     result.options(which, loss));
  return result;
}

template <class W, class T>
Inputs<W> widened(const Inputs<T>& in) {
  Inputs<W> wide({}, 0);
  wide.queries = converted<W>(in.queries);
  wide.keys = converted<W>(in.keys);
  wide.values = converted<W>(in.values);
  return wide;
}
template <class W, class T>
Loss<W> widened(const Loss<T>& loss) {
  Loss<W> wide({}, 0);
  wide.grad_out = converted<W>(loss.grad_out);
  wide.grad_lse = converted<W>(loss.grad_lse);
  return wide;
}

/// Fused gradients are the wider reference's but for a share of the largest of their kind: 1e-12 in
/// double; in float what scores as large as the largest log-sum-exp cost in rounding.
template <class T, class M>
void expect_changed_gradients(const Shape& shape, const M& mask, unsigned which,
                              const Extents<4>& bias_extents) {
  using W = Wider<T>;
  SCOPED_TRACE(shape.text() + " changes " + std::to_string(which) + " isa " +
               std::string(simd::name(simd::active())) + (sizeof(T) == 4 ? " float" : " double"));
  const Inputs<T> in(shape, which);
  const Loss<T> loss(shape, which);
  const Changes<T> changes(shape, which, bias_extents);
  const auto wide = changes.template as<W>();
  const auto expected =
      reference_modified<W>(shape, widened<W>(in), widened<W>(loss), mask, wide, which);
  double lse = 0;
  for (const T value : fused(shape, in, mask, changes.options(which)).lse) {
    if (std::isfinite(value)) lse = std::max(lse, std::fabs(static_cast<double>(value)));
  }
  const double tolerance = sizeof(T) == 8 ? 1e-12 : 0x1p-24 * 256 * (8 + lse);
  fused_changed(shape, in, loss, mask, changes, which)
      .with(expected, which, [&](const char* name, const auto& got, const auto& want) {
        double largest = 0, worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
          const auto error = std::fabs(static_cast<double>(static_cast<W>(got[i]) - want[i]));
          if (!(error <= worst)) worst = error;
          largest = std::max(largest, std::fabs(static_cast<double>(want[i])));
        }
        EXPECT_LE(worst, tolerance * std::max(largest, 0.1)) << name;
      });
}

}  // namespace heed::test
