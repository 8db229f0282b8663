// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/layers/parameters.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {

/// How a layer is called; other layers bring a struct with the same functions (masks, memories).
struct PlainCall {
  template <class L, class X>
  auto operator()(const L& layer, const X& x) const {
    return layer.forward(x);
  }
  template <class L, class X>
  auto operator()(const L& layer, const X& x, typename L::Saved& saved) const {
    return layer.forward(x, saved);
  }
};

template <class L>
std::vector<std::string> parameter_names(const L& layer) {
  std::vector<std::string> names;
  for_each_parameter([&](std::string_view name, const auto&) { names.emplace_back(name); }, layer);
  return names;
}

/// A parameter as a run of numbers.
template <class T>
struct FlatParameter {
  std::string name;
  T* data;
  Index size;
};
template <class T, class L>
std::vector<FlatParameter<T>> flat_parameters(L& layer) {
  std::vector<FlatParameter<T>> all;
  for_each_parameter(
      [&](std::string_view name, auto& p) {
        all.push_back({std::string(name), p.data(), p.size()});
      },
      layer);
  return all;
}

template <class X, class Y>
void copy_parameters(X& from, Y& to) {
  auto source = flat_parameters<const typename X::Output::value_type>(std::as_const(from));
  auto target = flat_parameters<typename Y::Output::value_type>(to);
  ASSERT_EQ(source.size(), target.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    ASSERT_EQ(source[i].name, target[i].name);
    for (Index j = 0; j < source[i].size; ++j) {
      target[i].data[j] = static_cast<typename Y::Output::value_type>(source[i].data[j]);
    }
  }
}

/// Weights away from the special values (0, 1) that layers start from.
template <class L>
void scatter_parameters(L& layer, std::uint64_t seed) {
  using T = typename L::Output::value_type;
  Random random(seed);
  for (const auto& p : flat_parameters<T>(layer)) {
    for (Index i = 0; i < p.size; ++i) {
      p.data[i] += static_cast<T>(0.3 * (2 * random.uniform() - 1));
    }
  }
}

template <class T, std::size_t Rank>
double weighted_sum(const Tensor<T, Rank>& y, const Tensor<T, Rank>& weights) {
  long double sum = 0;
  for (Index i = 0; i < y.size(); ++i) {
    sum += static_cast<long double>(y.data()[i]) * static_cast<long double>(weights.data()[i]);
  }
  return static_cast<double>(sum);
}

/// The slope of loss() in the number at `at`, by central differences of fourth order.
template <class Loss>
double slope(double& at, const Loss& loss) {
  constexpr double step = 5e-4;
  const double middle = at;
  const auto moved = [&](double steps) {
    at = middle + steps * step;
    return loss();
  };
  const double result = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step);
  at = middle;
  return result;
}

template <class Loss>
void expect_slopes(const std::string& name, double* at, const double* gradient, Index size,
                   const Loss& loss, double tolerance) {
  double wrong = 0, norm = 0;
  for (Index i = 0; i < size; ++i) {
    const double difference = slope(at[i], loss) - gradient[i];
    wrong += difference * difference;
    norm += gradient[i] * gradient[i];
  }
  EXPECT_LE(std::sqrt(wrong), tolerance * std::sqrt(norm) + 1e-11) << name;
  EXPECT_GT(norm, 0) << name << " has no gradient at all";
}

/// The parameter gradients of Σ weights · forward(), which `gradients` holds, against differences.
template <class L, class Loss>
void expect_parameter_gradients(L& layer, L& gradients, const Loss& loss, double tolerance = 1e-9) {
  const auto parameters = flat_parameters<double>(layer);
  const auto found = flat_parameters<double>(gradients);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    expect_slopes(parameters[i].name, parameters[i].data, found[i].data, parameters[i].size, loss,
                  tolerance);
  }
}

/// The gradients of Σ weights · layer(x) with respect to every parameter and to x, in double,
/// against differences: to 1e-9 of their norm.
template <class L, class Call = PlainCall>
void expect_gradients(L layer, typename L::Input x, const Call& call = {},
                      double tolerance = 1e-9) {
  typename L::Saved saved;
  const auto y = call(layer, x, saved);
  std::mt19937_64 bits(77);
  const auto weights = random_tensor<double, 3>(y.extents(), bits);
  L gradients = zeros_like(layer);
  const auto grad_x = layer.backward(weights, saved, gradients);
  const auto loss = [&] { return weighted_sum(call(layer, x), weights); };
  expect_parameter_gradients(layer, gradients, loss, tolerance);
  ASSERT_EQ(grad_x.extents(), x.extents());
  expect_slopes("input", x.data(), grad_x.data(), x.size(), loss, tolerance);
}

template <class A>
double norm_of(const A* a, Index size) {
  double sum = 0;
  for (Index i = 0; i < size; ++i) sum += std::pow(static_cast<double>(a[i]), 2);
  return std::sqrt(sum);
}
template <class A, class B>
double distance(const A* a, const B* b, Index size) {
  double sum = 0;
  for (Index i = 0; i < size; ++i) {
    sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  }
  return std::sqrt(sum);
}
template <class A, class B>
double relative_difference(const A* a, const B* b, Index size) {
  return distance(a, b, size) / (norm_of(b, size) + 1e-30);
}

/// Output and gradients in float beside those in double on the same numbers.
template <class F, class D, class Call = PlainCall>
void expect_float_agrees(F narrow, const D& wide, const typename F::Input& x, const Call& call = {},
                         double tolerance = 3e-6) {
  copy_parameters(wide, narrow);
  D same = wide;
  copy_parameters(narrow, same);  // rounded to float
  const auto wide_x = converted<double>(x);
  typename F::Saved narrow_saved;
  typename D::Saved wide_saved;
  const auto y = call(narrow, x, narrow_saved);
  const auto exact = call(same, wide_x, wide_saved);
  EXPECT_LE(relative_difference(y.data(), exact.data(), y.size()), tolerance) << "output";
  std::mt19937_64 bits(78);
  const auto weights = random_tensor<float, 3>(y.extents(), bits);
  F gradients = zeros_like(narrow);
  D exact_gradients = zeros_like(same);
  const auto grad_x = narrow.backward(weights, narrow_saved, gradients);
  const auto exact_x = same.backward(converted<double>(weights), wide_saved, exact_gradients);
  EXPECT_LE(relative_difference(grad_x.data(), exact_x.data(), grad_x.size()), tolerance)
      << "input";
  // Gradients that cancel to 0, as that of a bias of keys, are measured by the others.
  const auto found = flat_parameters<float>(gradients);
  const auto expected = flat_parameters<double>(exact_gradients);
  double total = 0;
  for (const auto& p : expected) total = std::max(total, norm_of(p.data, p.size));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double norm = norm_of(expected[i].data, expected[i].size);
    EXPECT_LE(distance(found[i].data, expected[i].data, found[i].size),
              tolerance * norm + 1e-7 * total)
        << found[i].name;
  }
}

/// Any part of the batch, and for layers that look at each token alone any tokens, have the bits
/// they have in the whole; so have training and inference, any thread count, and every instruction
/// set within itself.
template <class L, class Call = PlainCall>
void expect_same_bits(const L& layer, const typename L::Input& x, bool each_token_alone,
                      const Call& call = {}) {
  using T = typename L::Output::value_type;
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    SCOPED_TRACE(simd::name(isa));
    simd::use(isa);
    set_thread_count(1);
    typename L::Saved saved;
    const auto whole = call(layer, x, saved);
    std::mt19937_64 bits(79);
    const auto weights = random_tensor<T, 3>(whole.extents(), bits);
    L gradients = zeros_like(layer);
    const auto grad_x = layer.backward(weights, saved, gradients);
    for (const Index threads : {1, 2, 3}) {
      set_thread_count(threads);
      EXPECT_TRUE(same_bits(call(layer, x), whole)) << "inference, " << threads << " threads";
      typename L::Saved again;
      EXPECT_TRUE(same_bits(call(layer, x, again), whole));
      L others = zeros_like(layer);
      EXPECT_TRUE(same_bits(layer.backward(weights, again, others), grad_x)) << threads;
      const auto a = flat_parameters<T>(gradients), b = flat_parameters<T>(others);
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(
            std::memcmp(a[i].data, b[i].data, static_cast<std::size_t>(a[i].size) * sizeof(T)), 0)
            << a[i].name << " with " << threads << " threads";
      }
      const Index tokens = x.extent(1);
      for (Index first = 0; each_token_alone && first < tokens; ++first) {
        const Index end = std::min(first + threads, tokens);
        const auto some = Tensor<T, 3>::copy_of(x.view().slice(1, first, end));
        const auto expected = Tensor<T, 3>::copy_of(whole.view().slice(1, first, end));
        EXPECT_TRUE(same_bits(call(layer, some), expected)) << "tokens from " << first;
      }
    }
  }
}

/// backward adds to gradients that are there.
template <class L, class Call = PlainCall>
void expect_accumulates(const L& layer, const typename L::Input& x, const Call& call = {}) {
  using T = typename L::Output::value_type;
  typename L::Saved saved;
  const auto y = call(layer, x, saved);
  L once = zeros_like(layer), twice = zeros_like(layer);
  layer.backward(y, saved, once);
  layer.backward(y, saved, twice);
  layer.backward(y, saved, twice);
  const auto a = flat_parameters<T>(once), b = flat_parameters<T>(twice);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (Index j = 0; j < a[i].size; ++j) {
      ASSERT_NEAR(b[i].data[j], 2 * a[i].data[j], 1e-5 * (1 + std::fabs(a[i].data[j])))
          << a[i].name;
    }
  }
}

/// All laws. `make` gives the layer for a scalar type: make(float{}), make(double{}).
template <class Make, class Call = PlainCall>
void check_layer_laws(const Make& make, const Extents<3>& extents,
                      const std::vector<std::string>& names, bool each_token_alone = true,
                      const Call& call = {}) {
  auto wide = make(double{});
  auto narrow = make(float{});
  EXPECT_EQ(parameter_names(wide), names);
  scatter_parameters(wide, 5);
  scatter_parameters(narrow, 5);
  std::mt19937_64 bits(6);
  const auto x = random_tensor<double, 3>(extents, bits, 2.);
  expect_gradients(wide, x, call);
  expect_float_agrees(narrow, wide, converted<float>(x), call);
  expect_same_bits(narrow, converted<float>(x), each_token_alone, call);
  expect_same_bits(wide, x, each_token_alone, call);
  expect_accumulates(narrow, converted<float>(x), call);
}

}  // namespace heed::test
