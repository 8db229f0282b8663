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
  const auto allowed = [](Position at) {
    return (at.key + at.query) % 3 != 0 && at.query % 7 != 5;
  };
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

template <class T>
T scale_of(const AttentionOptions<T>& options) {
  return std::fabs(options.scale.value_or(T{1}));
}

/// Fused and reference, forward and backward: equal where they are infinite or NaN, near elsewhere.
template <class T>
void expect_like_reference(const Inputs<T>& in, const AttentionOptions<T>& given) {
  const Shape shape{1, 1, 1, in.queries.extent(2), in.keys.extent(2), in.queries.extent(3), 1};
  const auto expect_like = [](const auto& a, const auto& b, const char* what, T size = 1) {
    for (Index i = 0; i < a.size(); ++i) {
      const T x = a.data()[i], y = b.data()[i], tolerance = T(1e-5) * (std::fabs(y) + size);
      EXPECT_TRUE(x == y || (x != x && y != y) || std::fabs(x - y) <= tolerance)
          << what << ' ' << i << ": " << x << ", reference " << y;
    }
  };
  AttentionOptions<T> options = given;
  const auto result = fused(shape, in, Full{}, options);
  Result<T> defined(shape);
  options.log_sum_exp = defined.lse;
  reference_attention(in.queries, in.keys, in.values, Full{}, defined.out, options);
  expect_like(result.out, defined.out, "out");
  expect_like(result.lse, defined.lse, "log-sum-exp");
  // Weights come again from scores less log-sum-exp: nothing is left of them at such sizes.
  const T lse = result.lse(0, 0, 0);
  if (std::isfinite(lse) && std::fabs(lse) > T(1e3)) return;
  const auto largest = [](const auto& tensor) {
    T size = 0;
    for (const T x : tensor) size = std::max(size, std::fabs(x));
    return size;
  };
  Loss<T> loss(shape, 1);
  std::vector<T> sinks[2] = {std::vector<T>(given.sinks.size()),
                             std::vector<T>(given.sinks.size())};
  Gradients<T> gradients(shape), expected(shape);
  attention_backward(in.queries, in.keys, in.values, Full{}, result.out, result.lse, loss.grad_out,
                     gradients.queries, gradients.keys, gradients.values, given,
                     {.grad_sinks = sinks[0]});
  reference_backward(in.queries, in.keys, in.values, Full{}, result.out, result.lse, loss.grad_out,
                     expected.queries, expected.keys, expected.values, given,
                     {.grad_sinks = sinks[1]});
  expect_like(gradients.queries, expected.queries, "gradient of queries",
              scale_of(given) * largest(in.keys));
  expect_like(gradients.keys, expected.keys, "gradient of keys",
              scale_of(given) * largest(in.queries) * T(shape.queries));
  expect_like(gradients.values, expected.values, "gradient of values", T(shape.queries));
  for (std::size_t i = 0; i < sinks[0].size(); ++i) {
    const T x = sinks[0][i], y = sinks[1][i];
    EXPECT_TRUE(x == y || (x != x && y != y) || std::fabs(x - y) < 1e-4) << x << ' ' << y;
  }
}

/// Rows of one query number over two keys, short, decoded and in blocks.
template <class T>
void expect_all_like_reference(T query, T key, T other, const AttentionOptions<T>& options) {
  for (const Index queries : {1, 20, 70}) {
    for (const Index keys : {1, 2, 200}) {
      SCOPED_TRACE(std::to_string(query) + " · " + std::to_string(key) + " or " +
                   std::to_string(other) + ", " + std::to_string(queries) + " queries, " +
                   std::to_string(keys) + " keys");
      Inputs<T> in({1, 1, 1, queries, keys, 1, 1}, 72);
      std::fill(in.queries.begin(), in.queries.end(), query);
      std::fill(in.keys.begin(), in.keys.end(), other);
      in.keys(0, 0, 0, 0) = key;
      expect_like_reference(in, options);
    }
  }
}

/// `m` is the largest number that has a score in the kernels' units, nearly.
template <class T>
void expect_ends_of_the_range(T m) {
  const T root = std::sqrt(m), largest = std::numeric_limits<T>::max();
  for (const T part : {T(0.99), T(1.3), T(-0.99), T(-1.3)}) {
    for (const T other : {T(0), T(-0.5), T(-0.99), T(-1.35), T(0.99), T(1.3)}) {
      expect_all_like_reference<T>(root, root * part, root * other, {.scale = T{1}});
    }
  }
  // Products that only scale, or only keys, bring back.
  expect_all_like_reference<T>(largest, 3 / largest, 1 / largest, {.scale = T{1}});
  expect_all_like_reference<T>(root, 1 / root, 2 / root, {.scale = root});
  expect_all_like_reference<T>(root, 1 / root, 2 / root, {.scale = 2 * root});
  expect_all_like_reference<T>(root * 2, root * 3, root, {.scale = 1 / root / root});
  expect_all_like_reference<T>(largest, largest, -largest, {.scale = T{0}});
}

TEST_P(ScoreRange, ScoresAtTheEnds) {
  expect_ends_of_the_range<float>(std::numeric_limits<float>::max() / 1.4427f);
  expect_ends_of_the_range<double>(std::numeric_limits<double>::max() / 1.4427);
}

TEST_P(ScoreRange, BiasesSinksAndSoftcapsAtTheEnds) {
  constexpr float largest = std::numeric_limits<float>::max(), m = largest / 1.4427f;
  for (const float end : {0.99f * m, -0.99f * m, 1.3f * m, -1.3f * m, -largest}) {
    SCOPED_TRACE(end);
    for (const Index queries : {1, 20, 70}) {
      const Inputs<float> in({1, 1, 1, queries, 100, 4, 1}, 73);
      Tensor<float, 2> bias({queries, 100});
      std::fill(bias.begin(), bias.end(), end);
      expect_like_reference<float>(in, {.bias = bias});
      for (Index q = 0; q < queries; ++q) bias(q, 7) = 0;
      expect_like_reference<float>(in, {.bias = bias});
      const std::vector<float> number{end};
      expect_like_reference<float>(in, {.sinks = number});
      const std::vector<float> slope{end / 200};
      expect_like_reference<float>(in, {.alibi_slopes = slope});
      expect_like_reference<float>(in, {.softcap = std::fabs(end) / 2.2f});
      const auto far = [&](float score, Position at) { return at.key % 2 ? score : end; };
      const ScoreFunction<float> function(far);
      const Shape shape{1, 1, 1, queries, 100, 4, 1};
      Result<float> defined(shape);
      const auto result = fused<float>(shape, in, Full{}, {.score_function = function});
      reference_attention(in.queries, in.keys, in.values, Full{}, defined.out,
                          {.log_sum_exp = defined.lse, .score_function = function});
      for (Index q = 0; q < queries; ++q) {
        const float x = result.lse(0, 0, q), y = defined.lse(0, 0, q);
        EXPECT_TRUE((x != x && y != y) || std::fabs(x - y) <= 1e-5f * std::fabs(y)) << x << y;
      }
    }
  }
}

TEST(Softcap, ThatKernelsCannotHoldIsRefused) {
  Tensor<float, 2> one({1, 1});
  EXPECT_THROW(attention(one, one, one, Full{}, {.softcap = 3e38f}), InvalidArgument);
  EXPECT_NO_THROW(attention(one, one, one, Full{}, {.softcap = 1.6e38f}));
}

TEST_P(ScoreRange, ValuesAsLargeAsTheContractSays) {
  // Scores that grow by just less than what moves the maximum: sums are as high as they get.
  for (const Index queries : {1, 20}) {
    const Shape shape{1, 1, 1, queries, 300, 1, 1};
    Inputs<float> in(shape, 74);
    std::fill(in.queries.begin(), in.queries.end(), 1.f);
    for (Index k = 0; k < 300; ++k) in.keys(0, 0, k, 0) = k < 96 ? 0.f : 23.f;
    const float value = std::numeric_limits<float>::max() / 300 / 0x1p40f;
    std::fill(in.values.begin(), in.values.end(), value);
    const auto result = fused(shape, in, Full{}, {.scale = 1.f});
    for (Index q = 0; q < queries; ++q) EXPECT_NEAR(result.out(0, 0, q, 0) / value, 1, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ScoreRange, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

class NarrowScoreRange : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(NarrowScoreRange, Bfloat16HasFloatsRange) {
  for (const float product : {1e7f, 1e8f, 3e9f, -3e9f, 5e9f, -5e9f, -1e12f, 1e20f, 2.2e38f, 2.5e38f,
                              -2.2e38f, -2.5e38f}) {
    for (const Index queries : {1, 20, 70}) {
      const Shape shape{1, 1, 1, queries, 50, 1, 1};
      NarrowInputs in(shape, 75);
      std::fill(in.queries.begin(), in.queries.end(), bfloat16(0x1p63f));
      std::fill(in.keys.begin(), in.keys.end(), bfloat16(product * 0x1p-63f));
      const auto result = narrow_attention(shape, in, Full{}, {.scale = 1.f});
      const auto wide = [](const auto& tensor) { return converted<float>(tensor); };
      Result<float> defined(shape);
      reference_attention(wide(in.queries), wide(in.keys), wide(in.values), Full{}, defined.out,
                          {.scale = 1.f, .log_sum_exp = defined.lse});
      for (Index q = 0; q < queries; ++q) {
        const float x = result.lse(0, 0, q), y = defined.lse(0, 0, q);
        EXPECT_TRUE(x == y || (x != x && y != y) || std::fabs(x - y) <= 1e-2f * std::fabs(y))
            << product << ": " << x << ", reference " << y;
        const float out = static_cast<float>(result.out(0, 0, q, 0)),
                    mean = defined.out(0, 0, q, 0);
        EXPECT_TRUE((out != out && mean != mean) || std::fabs(out - mean) <= 1e-2f)
            << product << ": " << out << ", reference " << mean;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, NarrowScoreRange, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
