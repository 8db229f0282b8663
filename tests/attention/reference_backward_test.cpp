// SPDX-License-Identifier: MIT
#include <heed/attention/reference.hpp>

#include <heed/masks/intervals.hpp>

#include "support/backward_cases.hpp"
#include "support/changed_gradients.hpp"
#include "support/mask_catalogue.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

TEST(ReferenceBackward, TwoKeysByHand) {
  // One query of dim 1, q = 1, keys 0 and ln 3: weights 1/4 and 3/4; values 10 and 2: output 4.
  const Tensor<double, 2> q({1, 1}, {1.0}), k({2, 1}, {0.0, std::log(3.0)}), v({2, 1}, {10.0, 2.0}),
      grad({1, 1}, {1.0});
  Tensor<double, 2> out({1, 1}), gq({1, 1}), gk({2, 1}), gv({2, 1});
  Tensor<double, 1> lse({1});
  reference_attention(q, k, v, Full{}, out, {.log_sum_exp = lse});
  reference_backward(q, k, v, Full{}, out, lse, grad, gq, gk, gv);
  EXPECT_NEAR(gv(0, 0), 0.25, 1e-15);
  EXPECT_NEAR(gv(1, 0), 0.75, 1e-15);
  // dS = P · (dP − delta) = 1/4 · (10 − 4) = 1.5 and 3/4 · (2 − 4) = −1.5.
  EXPECT_NEAR(gk(0, 0), 1.5, 1e-14);
  EXPECT_NEAR(gk(1, 0), -1.5, 1e-14);
  EXPECT_NEAR(gq(0, 0), -1.5 * std::log(3.0), 1e-14);
}

/// Loss Σ out · grad_out + Σ lse · grad_lse of the forward reference, over rows that see a key.
template <class T, class M>
T loss_of(const Shape& shape, const Inputs<T>& in, const Loss<T>& loss, const M& mask) {
  Result<T> result(shape);
  reference_attention(in.queries, in.keys, in.values, mask, result.out,
                      {.log_sum_exp = result.lse});
  T sum = 0;
  for (Index i = 0; i < result.out.size(); ++i) {
    sum += result.out.data()[i] * loss.grad_out.data()[i];
  }
  for (Index i = 0; i < result.lse.size(); ++i) {
    if (std::isfinite(result.lse.data()[i])) sum += result.lse.data()[i] * loss.grad_lse.data()[i];
  }
  return sum;
}

/// Every entry of the Jacobian against 4-point central differences, in long double.
template <class M>
void expect_finite_differences(const Shape& shape, const M& mask) {
  using T = long double;
  Inputs<T> in(shape, 3);
  const Loss<T> loss(shape, 3);
  Result<T> forward(shape);
  reference_attention(in.queries, in.keys, in.values, mask, forward.out,
                      {.log_sum_exp = forward.lse});
  Gradients<T> gradients(shape);
  reference_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
                     gradients.queries, gradients.keys, gradients.values, {},
                     {.grad_log_sum_exp = loss.grad_lse});
  const auto check = [&](Tensor<T, 4>& input, const Tensor<T, 4>& gradient, const char* name) {
    T norm = 0, worst = 0;
    for (Index i = 0; i < input.size(); ++i) {
      T& entry = input.data()[i];
      const T held = entry;
      const auto at = [&](T step) {
        entry = held + step;
        const T value = loss_of(shape, in, loss, mask);
        entry = held;
        return value;
      };
      const T h = 1e-3L;
      const T difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      worst = std::max(worst, std::fabs(difference - gradient.data()[i]));
      norm += gradient.data()[i] * gradient.data()[i];
    }
    EXPECT_LE(static_cast<double>(worst), 1e-9 * static_cast<double>(std::sqrt(norm))) << name;
  };
  check(in.queries, gradients.queries, "queries");
  check(in.keys, gradients.keys, "keys");
  check(in.values, gradients.values, "values");
}

TEST(ReferenceBackward, EqualsFiniteDifferences) {
  expect_finite_differences({1, 1, 1, 3, 5, 4, 3}, Full{});
  expect_finite_differences({2, 4, 2, 4, 3, 2, 3}, Full{});
  // The first query sees nothing, the second one key.
  expect_finite_differences({1, 2, 1, 5, 4, 3, 2}, Causal{});
  expect_finite_differences({1, 2, 2, 6, 6, 2, 2}, masks::last_n(2) & masks::EveryNthKey{3});
}

/// The same for everything that changes of scores depend on, alone and together.
TEST(ReferenceBackward, ChangesOfScoresEqualFiniteDifferences) {
  using T = long double;
  const Shape shape{2, 2, 1, 5, 6, 3, 2};
  Inputs<T> in(shape, 6);
  const Loss<T> loss(shape, 6);
  for (unsigned which : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 17u, 95u, unsigned{Changes<float>::all}}) {
    SCOPED_TRACE("changes " + std::to_string(which));
    Changes<T> score_mods(shape, 6, {1, 2, 5, 6});
    const auto loss_now = [&] {
      Result<T> result(shape);
      auto options = score_mods.options(which);
      options.log_sum_exp = result.lse;
      reference_attention(in.queries, in.keys, in.values, Causal{}, result.out, options);
      T sum = 0;
      for (Index i = 0; i < result.out.size(); ++i) {
        sum += result.out.data()[i] * loss.grad_out.data()[i];
      }
      for (Index i = 0; i < result.lse.size(); ++i) {
        sum += result.lse.data()[i] * loss.grad_lse.data()[i];
      }
      return sum;
    };
    const auto gradients = reference_modified(shape, in, loss, Causal{}, score_mods, which);
    const auto check = [&](const char* name, auto& values, const auto& gradient) {
      const T h = 1e-3L;
      T norm = 0, worst = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(values.size()); ++i) {
        T& entry = values.data()[i];
        const T held = entry;
        const auto at = [&](T step) {
          entry = held + step;
          const T value = loss_now();
          entry = held;
          return value;
        };
        const T difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
        worst = std::max(worst, std::fabs(difference - gradient.data()[i]));
        norm += gradient.data()[i] * gradient.data()[i];
      }
      EXPECT_LE(static_cast<double>(worst), 1e-9 * static_cast<double>(std::sqrt(norm))) << name;
    };
    check("queries", in.queries, gradients.tensors.queries);
    check("keys", in.keys, gradients.tensors.keys);
    check("values", in.values, gradients.tensors.values);
    if (which & Changes<T>::alibi) check("slopes", score_mods.slopes, gradients.slopes);
    if (which & Changes<T>::relative)
      check("relative", score_mods.relative_table, gradients.relative);
    if (which & Changes<T>::bias) check("bias", score_mods.bias_table, gradients.bias);
    if (which & Changes<T>::sinks) check("sinks", score_mods.sink_scores, gradients.sinks);
  }
}

TEST(ReferenceBackward, AMaskedPairIsNotLookedAt) {
  const Shape shape{1, 1, 1, 4, 6, 3, 2};
  Inputs<float> in(shape, 4);
  const Loss<float> loss(shape, 4);
  const auto gradients = [&] {
    Result<float> forward(shape);
    reference_attention(in.queries, in.keys, in.values, masks::last_n(2), forward.out,
                        {.log_sum_exp = forward.lse});
    Gradients<float> result(shape);
    reference_backward(in.queries, in.keys, in.values, masks::last_n(2), forward.out, forward.lse,
                       loss.grad_out, result.queries, result.keys, result.values);
    return result;
  };
  const auto clean = gradients();
  in.keys(0, 0, 0, 1) = in.values(0, 0, 0, 0) = NAN;  // nobody sees key 0
  EXPECT_TRUE(same_bits(gradients(), clean));
}

}  // namespace
}  // namespace heed::test
