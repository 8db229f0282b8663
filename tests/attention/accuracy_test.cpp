// SPDX-License-Identifier: MIT
// R9 of docs/contract.md: the bounds that hold for every input, on inputs whose roundings all go
// one way. forward_test and backward_test meet random inputs, and the smaller bounds of those.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <heed/masks.hpp>

#include "support/backward_cases.hpp"
#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

/// A row as the bounds know it.
struct Row {
  double keys = 0;      // that it sees
  double head_dim = 0;  //
  double largest = 0;   // A
  double value = 0;     // V
  double log_sum_exp = 0;

  double out_bound() const {
    return value * (16 + std::min(keys, 1536.) + std::min(keys, 112.) + keys / 200 +
                    (8 + head_dim) * largest);
  }
  double lse_bound() const {
    return 8 + 4 * std::fabs(log_sum_exp) + std::min(keys, 112.) + keys / 300 +
           (10 + head_dim) * largest;
  }
  double gradient_factor(double value_dim, double queries) const {
    return 32 + 4 * keys + 2 * value_dim + queries + 8 * std::fabs(log_sum_exp) +
           (32 + 4 * head_dim) * largest;
  }
};

template <class T>
constexpr double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;

template <class T>
T in_half_to_one(std::mt19937_64& bits) {
  return static_cast<T>(0.5 + static_cast<double>(bits() >> 11) * 0x1p-54);
}

class Accuracy : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// Every row that sees all keys, from the wide reference: within the bounds, whose largest use is
/// returned.
template <class T>
double largest_use(const Shape& shape, const Inputs<T>& in, T scale) {
  const AttentionOptions<T> options{.scale = scale};
  const auto result = fused(shape, in, Full{}, options);
  const auto expected = exact(shape, in, Full{}, options);
  double use = 0;
  for (Index q = 0; q < shape.queries; ++q) {
    Row row{static_cast<double>(shape.keys), static_cast<double>(shape.head_dim), 0, 0,
            static_cast<double>(expected.lse(0, 0, q))};
    for (Index k = 0; k < shape.keys; ++k) {
      double sum = 0;
      for (Index d = 0; d < shape.head_dim; ++d) {
        sum += std::fabs(static_cast<double>(scale) * static_cast<double>(in.queries(0, 0, q, d)) *
                         static_cast<double>(in.keys(0, 0, k, d)));
      }
      row.largest = std::max(row.largest, sum);
      for (Index d = 0; d < shape.value_dim; ++d) {
        row.value = std::max(row.value, std::fabs(static_cast<double>(in.values(0, 0, k, d))));
      }
    }
    using W = Wider<T>;
    const W lse = static_cast<W>(result.lse(0, 0, q)) - expected.lse(0, 0, q);
    use = std::max(use, static_cast<double>(std::fabs(lse)) / (unit<T> * row.lse_bound()));
    for (Index d = 0; d < shape.value_dim; ++d) {
      const W error = static_cast<W>(result.out(0, 0, q, d)) - expected.out(0, 0, q, d);
      use = std::max(use, static_cast<double>(std::fabs(error)) / (unit<T> * row.out_bound()));
    }
  }
  return use;
}

/// Equal scores and equal values: every addition rounds the same way.
template <class T>
void expect_constant_values_within() {
  std::mt19937_64 bits(5);
  for (const Index keys :
       {1, 2, 5, 17, 33, 90, 95, 96, 97, 150, 192, 500, 1536, 1537, 3000, 6000}) {
    for (const Index queries : {1, 4, 20}) {
      const Shape shape{1, 1, 1, queries, keys, 1, 3};
      Inputs<T> in(shape, 1);
      std::fill(in.queries.begin(), in.queries.end(), T{0});
      for (Index d = 0; d < 3; ++d) {
        const T value = in_half_to_one<T>(bits);
        for (Index k = 0; k < keys; ++k) in.values(0, 0, k, d) = value;
      }
      EXPECT_LE(largest_use(shape, in, T{1}), 1) << shape.text();
    }
  }
}

TEST_P(Accuracy, ConstantValuesRoundOneWay) {
  expect_constant_values_within<float>();
  expect_constant_values_within<double>();
}

/// Queries and keys that are constant along head_dim; two keys with opposite values, so that all
/// of a score's error is seen.
template <class T>
void expect_constant_queries_within() {
  std::mt19937_64 bits(9);
  for (const Index head_dim : {1, 16, 63, 64, 128, 256, 300, 1000}) {
    for (const Index queries : {1, 4, 20}) {
      for (const T scale : {T{1} / static_cast<T>(head_dim), T{1} / 20, -T{1} / 20}) {
        const Shape shape{1, 1, 1, queries, 2, head_dim, 1};
        Inputs<T> in(shape, 1);
        for (Index k = 0; k < 2; ++k) {
          const T key = in_half_to_one<T>(bits);
          for (Index d = 0; d < head_dim; ++d) in.keys(0, 0, k, d) = key;
        }
        for (Index q = 0; q < queries; ++q) {
          const T query = in_half_to_one<T>(bits);
          for (Index d = 0; d < head_dim; ++d) in.queries(0, 0, q, d) = query;
        }
        in.values(0, 0, 0, 0) = 1, in.values(0, 0, 1, 0) = -1;
        EXPECT_LE(largest_use(shape, in, scale), 1) << shape.text() << " scale " << scale;
      }
    }
  }
}

TEST_P(Accuracy, ConstantQueriesRoundOneWay) {
  expect_constant_queries_within<float>();
  expect_constant_queries_within<double>();
}

/// Maxima that move, in every block or in every chunk, by little or past the lazy limit; and near
/// equal scores, whose log-sum-exp is all sum.
template <class T>
void expect_moving_maxima_within() {
  std::mt19937_64 bits(11);
  for (const Index keys : {141, 700, 3100}) {
    for (const double slope : {0., 1e-6, 1e-3, 0.05, 0.5}) {
      for (const Index queries : {2, 20}) {
        const Shape shape{1, 1, 1, queries, keys, 1, 2};
        Inputs<T> in(shape, 3);
        for (Index q = 0; q < queries; ++q) in.queries(0, 0, q, 0) = in_half_to_one<T>(bits);
        for (Index k = 0; k < keys; ++k) {
          in.keys(0, 0, k, 0) = static_cast<T>(slope * static_cast<double>(k));
          in.values(0, 0, k, 0) = in_half_to_one<T>(bits);
          in.values(0, 0, k, 1) = k % 2 == 0 ? T{1} : T{-1};
        }
        EXPECT_LE(largest_use(shape, in, T{1}), 1) << shape.text() << " slope " << slope;
      }
    }
  }
}

TEST_P(Accuracy, MaximaThatMove) {
  expect_moving_maxima_within<float>();
  expect_moving_maxima_within<double>();
}

/// Gradients of constant inputs against the formulas with absolute values, times the factor.
template <class T>
void expect_gradients_within(Index length, Index head_dim, T scale) {
  const Shape shape{1, 1, 1, length, length, head_dim, 3};
  SCOPED_TRACE(shape.text());
  Inputs<T> in(shape, 1);
  Loss<T> loss(shape, 1);
  std::mt19937_64 bits(13);
  for (auto* tensor : {&in.queries, &in.keys, &in.values, &loss.grad_out}) {
    const T value = in_half_to_one<T>(bits);
    std::fill(tensor->begin(), tensor->end(), value);
  }
  std::fill(loss.grad_lse.begin(), loss.grad_lse.end(), in_half_to_one<T>(bits));
  const AttentionOptions<T> options{.scale = scale};
  const auto result = fused_gradients(shape, in, loss, Full{}, options);
  const auto expected = exact_gradients(shape, in, loss, Full{}, options);
  // All rows and keys are alike: every weight is 1 / length, every score A.
  const auto number = [](T x) { return std::fabs(static_cast<double>(x)); };
  const double dims = static_cast<double>(head_dim), keys = static_cast<double>(length);
  const double q = number(in.queries(0, 0, 0, 0)), k = number(in.keys(0, 0, 0, 0));
  const double v = number(in.values(0, 0, 0, 0)), o = number(loss.grad_out(0, 0, 0, 0));
  const double a = number(scale) * dims * q * k;
  const Row row{keys, dims, a, v, static_cast<double>(scale) * dims * q * k + std::log(keys)};
  const double factor = unit<T> * row.gradient_factor(3, keys);
  const double grad_score = (2 * 3 * o * v + number(loss.grad_lse(0, 0, 0))) / keys;
  const auto expect_within = [](const auto& fused, const auto& wide, double bound) {
    double error = 0;
    for (Index i = 0; i < fused.size(); ++i) {
      using W = Wider<T>;
      const W off = static_cast<W>(fused.data()[i]) - wide.data()[i];
      error = std::max(error, static_cast<double>(std::fabs(off)));
    }
    EXPECT_LE(error, bound);
  };
  expect_within(result.values, expected.values, factor * o);
  expect_within(result.queries, expected.queries, factor * number(scale) * keys * grad_score * k);
  expect_within(result.keys, expected.keys, factor * number(scale) * keys * grad_score * q);
}

TEST_P(Accuracy, GradientsOfConstantsRoundOneWay) {
  for (const Index length : {1, 20, 64, 97, 250}) {
    for (const Index head_dim : {1, 40}) {
      expect_gradients_within<float>(length, head_dim, 0.1f);
      expect_gradients_within<double>(length, head_dim, 0.1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Accuracy, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

class NarrowAccuracy : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(NarrowAccuracy, ConstantValuesRoundOneWay) {
  // Equal values deviate nowhere: float's bounds and one rounding of the result are left.
  for (const Index keys : {1, 33, 97, 1537, 3000}) {
    for (const Index queries : {1, 20}) {
      const Shape shape{1, 1, 1, queries, keys, 1, 1};
      NarrowInputs in(shape, 1);
      std::fill(in.queries.begin(), in.queries.end(), bfloat16(0.f));
      const bfloat16 value(1.4609375f);
      std::fill(in.values.begin(), in.values.end(), value);
      const auto result = narrow_attention(shape, in, Full{}, {.scale = 1.f});
      const double exact = static_cast<float>(value), lse = std::log(static_cast<double>(keys));
      const Row row{static_cast<double>(keys), 1, 0, exact, lse};
      for (Index q = 0; q < queries; ++q) {
        EXPECT_NEAR(static_cast<float>(result.out(0, 0, q, 0)), exact,
                    unit<float> * row.out_bound() + 0x1p-8 * exact);
        EXPECT_NEAR(result.lse(0, 0, q), lse, unit<float> * row.lse_bound() + 1.1 * 0x1p-8);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, NarrowAccuracy, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
