// SPDX-License-Identifier: MIT
// Scores at the ends of their range (docs/contract.md, semantics): kernels and references agree.
#include <cmath>
#include <limits>
#include <vector>

#include <heed/attention/weights.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"
#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

class ScoreRange : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// At −∞ a NaN, by −∞ + ∞.
struct Square {
  float value(float score, Position) const { return score + 0.1f * score * score; }
  float derivative(float score, Position) const { return 1 + 0.2f * score; }
};
/// At −∞ a number: it would bring the key back.
struct Squash {
  float value(float score, Position) const { return std::tanh(score); }
  float derivative(float score, Position) const { return 1 - value(score, {}) * value(score, {}); }
};

/// A bias of −∞ or 0 is a mask, whatever function comes after it.
void expect_bias_is_mask(const Shape& shape, const ScoreFunction<float>& function) {
  SCOPED_TRACE(shape.text());
  const Inputs<float> in(shape, 71);
  const Loss<float> loss(shape, 71);
  const auto allowed = [](Position at) { return (at.key + at.query) % 3 != 0 && at.query % 7 != 5; };
  Tensor<float, 2> bias({shape.queries, shape.keys});
  for (Index q = 0; q < shape.queries; ++q) {
    for (Index k = 0; k < shape.keys; ++k) {
      const bool sees = allowed({0, 0, shape.keys - shape.queries + q, k});
      bias(q, k) = sees ? 0.f : -infinity<float>;
    }
  }
  const AttentionOptions<float> by_mask{.score_function = function};
  const AttentionOptions<float> by_bias{.bias = bias, .score_function = function};
  const auto masked = fused(shape, in, masks::predicate(allowed), by_mask);
  const auto biased = fused(shape, in, Full{}, by_bias);
  AttentionOptions<float> options = by_bias;
  Result<float> defined(shape);
  options.log_sum_exp = defined.lse;
  reference_attention(in.queries, in.keys, in.values, Full{}, defined.out, options);
  const auto expect_near = [](const auto& a, const auto& b, float tolerance) {
    for (Index i = 0; i < a.size(); ++i) {
      const float x = a.data()[i], y = b.data()[i];
      EXPECT_TRUE(x == y || std::fabs(x - y) <= tolerance) << i << ": " << x << " " << y;
    }
  };
  EXPECT_TRUE(same_bits(masked.out, biased.out));
  EXPECT_TRUE(same_bits(masked.lse, biased.lse));
  expect_near(biased.out, defined.out, 1e-5f);
  expect_near(biased.lse, defined.lse, 1e-5f);
  expect_near(fused_gradients(shape, in, loss, Full{}, by_bias).queries,
              fused_gradients(shape, in, loss, masks::predicate(allowed), by_mask).queries, 1e-5f);
  const auto gradients = fused_gradients(shape, in, loss, Full{}, by_bias);
  Gradients<float> expected(shape);
  reference_backward(in.queries, in.keys, in.values, Full{}, biased.out, biased.lse, loss.grad_out,
                     expected.queries, expected.keys, expected.values, by_bias,
                     {.grad_log_sum_exp = loss.grad_lse});
  expect_near(gradients.queries, expected.queries, 1e-4f);
  expect_near(gradients.keys, expected.keys, 1e-4f);
  expect_near(gradients.values, expected.values, 1e-4f);
  expect_near(attention_weights(in.queries, in.keys, Full{}, by_bias),
              attention_weights(in.queries, in.keys, masks::predicate(allowed), by_mask), 0.f);
}

TEST_P(ScoreRange, ABiasOfMinusInfinityIsNotSeenByAFunction) {
  const Square square;
  const Squash squash;
  for (const Index queries : {1, 3, 20, 70}) {
    for (const Index keys : {70, 300}) {
      expect_bias_is_mask({1, 1, 1, queries, keys, 8, 5}, square);
      expect_bias_is_mask({1, 1, 1, queries, keys, 8, 5}, squash);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ScoreRange, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
