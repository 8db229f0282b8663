// SPDX-License-Identifier: MIT
// Backward passes where little is seen, where gradients lie apart and where masks do not fit.
#include <heed/attention/backward.hpp>

#include <heed/attention/packed.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

/// A score's square times a weight of its key's and query's positions.
struct ByPosition {
  double weight(Position at) const {
    return 0.02 * static_cast<double>(at.key % 7 + 1) + 0.01 * static_cast<double>(at.query % 3);
  }
  double value(double score, Position at) const { return score + weight(at) * score * score; }
  double derivative(double score, Position at) const { return 1 + 2 * weight(at) * score; }
};

/// Output and gradients of a call with a score function are those of the definition.
template <class M>
void expect_as_defined(const Shape& shape, const M& mask, const AttentionOptions<double>& options) {
  const Inputs<double> in(shape, 1);
  const Loss<double> loss(shape, 2);
  const auto result = fused_gradients(shape, in, loss, mask, options);
  const auto forward = fused(shape, in, mask, options);
  Tensor<double, 4> defined(forward.out.extents());
  reference_attention(in.queries, in.keys, in.values, mask, defined, options);
  Gradients<double> expected(shape);
  reference_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
                     expected.queries, expected.keys, expected.values, options,
                     {.grad_log_sum_exp = loss.grad_lse});
  EXPECT_LT(relative_error(forward.out, defined), 1e-12);
  EXPECT_LT(relative_error(result.queries, expected.queries), 1e-12);
  EXPECT_LT(relative_error(result.keys, expected.keys), 1e-12);
  EXPECT_LT(relative_error(result.values, expected.values), 1e-12);
}

TEST(BackwardEdges, AFunctionsDerivativeStandsAtItsKey) {
  const Shape shape{.batch = 1,
                    .heads = 2,
                    .kv_heads = 1,
                    .queries = 70,
                    .keys = 230,
                    .head_dim = 5,
                    .value_dim = 4};
  AttentionOptions<double> options;
  options.score_function = ByPosition();
  expect_as_defined(shape, masks::Full{}, options);
  expect_as_defined(shape, masks::Causal{}, options);
  // keys with holes between them
  expect_as_defined(shape, predicate([](Index, Index key) { return key % 3 == 0; }), options);
}

/// Halves scores that a mask by the call's rows hides.
struct ByRowOfTheCall {
  double factor(Position at) const { return allows(*mask, at) ? 1 : 0.5; }
  double value(double score, Position at) const { return factor(at) * score; }
  double derivative(double, Position at) const { return factor(at); }

  const masks::Dense* mask;
};

TEST(BackwardEdges, AFunctionIsToldTheFirstQueryOfTheCall) {
  for (const Index queries : {1, 2, 5, 33, 70}) {
    SCOPED_TRACE(queries);
    const Shape shape{.batch = 2,
                      .heads = 2,
                      .kv_heads = 1,
                      .queries = queries,
                      .keys = 110,
                      .head_dim = 5,
                      .value_dim = 4};
    const masks::Dense odd({1, 1, queries, shape.keys},
                           [](Index, Index, Index row, Index key) { return (row + key) % 2 != 0; });
    AttentionOptions<double> options;
    options.score_function = ByRowOfTheCall{&odd};
    options.first_queries = {7, 31};
    expect_as_defined(shape, masks::Full{}, options);
    expect_as_defined(shape, masks::Causal{}, options);
  }
}

TEST(BackwardEdges, GradientsThatLieApartGetEveryNumber) {
  for (const Index keys : {40, 300}) {
    const Shape shape{.batch = 1,
                      .heads = 2,
                      .kv_heads = 2,
                      .queries = keys,
                      .keys = keys,
                      .head_dim = 6,
                      .value_dim = 5};
    const Inputs<double> in(shape, 3);
    const Loss<double> loss(shape, 4);
    const auto forward = fused(shape, in, masks::Causal{});
    const auto expected = fused_gradients(shape, in, loss, masks::Causal{});
    for (const Index step : {1, 2, 3}) {
      std::vector<Tensor<double, 4>> wide;
      for (const Index dim : {6, 6, 5}) {
        wide.emplace_back(Extents<4>{1, 2, keys, dim * step});
        std::fill(wide.back().begin(), wide.back().end(), 7.0);
      }
      const auto apart = [&](std::size_t i) {
        return wide[i].view().slice(3, 0, wide[i].extent(3), step);
      };
      attention_backward(in.queries, in.keys, in.values, masks::Causal{}, forward.out, forward.lse,
                         loss.grad_out, apart(0), apart(1), apart(2), {},
                         {.grad_log_sum_exp = loss.grad_lse});
      EXPECT_TRUE(same_bits(Tensor<double, 4>::copy_of(apart(0)), expected.queries)) << step;
      EXPECT_TRUE(same_bits(Tensor<double, 4>::copy_of(apart(1)), expected.keys)) << step;
      EXPECT_TRUE(same_bits(Tensor<double, 4>::copy_of(apart(2)), expected.values)) << step;
      for (const auto& tensor : wide) {
        for (Index i = 0; i < tensor.size(); ++i) {
          ASSERT_TRUE(i % step == 0 || tensor.data()[i] == 7) << "between them";
        }
      }
    }
  }
}

/// The log-sum-exp of a query that sees no key is its sink: all of its gradient is the sink's.
TEST(BackwardEdges, AQueryThatSeesNoKeyGivesItsGradientToTheSink) {
  for (const Index value_dim : {3, 16, 32}) {
    const Shape shape{.batch = 1,
                      .heads = 2,
                      .kv_heads = 2,
                      .queries = 20,
                      .keys = 20,
                      .head_dim = 4,
                      .value_dim = value_dim};
    const Inputs<double> in(shape, 5);
    const Loss<double> loss(shape, 6);
    const std::vector<double> sinks = {0.5, -1};
    AttentionOptions<double> options;
    options.sinks = sinks;
    const auto mask =
        predicate([](Index query, Index key) { return query % 3 != 0 && key <= query; });
    const auto forward = fused(shape, in, mask, options);
    auto broken = loss.grad_out;  // where nothing is seen, whatever it holds
    for (Index head = 0; head < 2; ++head) {
      for (Index query = 0; query < 20; query += 3) {
        for (Index d = 0; d < value_dim; ++d) broken(0, head, query, d) = NAN;
      }
    }
    const auto gradients = [&](const auto& backward, const GradientOptions<double>& given) {
      Gradients<double> unused(shape);
      backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, broken,
               unused.queries, unused.keys, unused.values, options, given);
      for (Index d = 0; d < 4; ++d) EXPECT_EQ(unused.queries(0, 1, 3, d), 0);
    };
    std::vector<double> by_kernel(2), by_formula(2), finite(2);
    gradients([](auto&&... all) { attention_backward(all...); },
              {.grad_log_sum_exp = loss.grad_lse, .grad_sinks = by_kernel});
    gradients([](auto&&... all) { reference_backward(all...); },
              {.grad_log_sum_exp = loss.grad_lse, .grad_sinks = by_formula});
    const auto value_at = [&](std::size_t head, double sink) {
      auto moved = sinks;
      moved[head] = sink;
      AttentionOptions<double> other = options;
      other.sinks = moved;
      const auto result = fused(shape, in, mask, other);
      double sum = 0;
      for (Index i = 0; i < result.out.size(); ++i) {
        sum += result.out.data()[i] * loss.grad_out.data()[i];
      }
      for (Index i = 0; i < result.lse.size(); ++i) {
        sum += result.lse.data()[i] * loss.grad_lse.data()[i];
      }
      return sum;
    };
    for (std::size_t head : {0u, 1u}) {
      const double step = 1e-4;
      finite[head] =
          (value_at(head, sinks[head] + step) - value_at(head, sinks[head] - step)) / (2 * step);
      EXPECT_NEAR(by_kernel[head], finite[head], 1e-6) << value_dim;
      EXPECT_NEAR(by_formula[head], finite[head], 1e-6) << value_dim;
    }
  }
}

TEST(BackwardEdges, NoItemsAtAll) {
  const Shape shape{.batch = 0,
                    .heads = 2,
                    .kv_heads = 2,
                    .queries = 100,
                    .keys = 100,
                    .head_dim = 4,
                    .value_dim = 4};
  const Inputs<float> in(shape, 7);
  const auto by_asking = predicate([](Index query, Index key) { return key <= query; });
  EXPECT_EQ(fused(shape, in, by_asking).out.size(), 0);
  EXPECT_EQ(fused_gradients(shape, in, Loss<float>(shape, 8), by_asking).keys.size(), 0);
}

TEST(BackwardEdges, MasksThatDoNotFitAreRefusedBeforeAnythingIsWritten) {
  const Shape shape{.batch = 2,
                    .heads = 1,
                    .kv_heads = 1,
                    .queries = 6,
                    .keys = 6,
                    .head_dim = 4,
                    .value_dim = 4};
  const Inputs<float> in(shape, 9);
  const Loss<float> loss(shape, 10);
  const auto forward = fused(shape, in, masks::Full{});
  Gradients<float> result(shape);
  const masks::Padding three({6, 6, 6});
  EXPECT_THROW(attention_backward(in.queries, in.keys, in.values, three, forward.out, forward.lse,
                                  loss.grad_out, result.queries, result.keys, result.values),
               ShapeError);
  EXPECT_THROW(reference_backward(in.queries, in.keys, in.values, three, forward.out, forward.lse,
                                  loss.grad_out, result.queries, result.keys, result.values),
               ShapeError);
  Tensor<bfloat16, 4> narrow(in.keys.extents());
  EXPECT_THROW(attention_backward(narrow, narrow, narrow, three, narrow, forward.lse, narrow,
                                  result.queries, result.keys, result.values),
               ShapeError);
  for (const float value : result.keys) EXPECT_TRUE(std::isnan(value));
  const Tensor<float, 3> rows({1, 12, 4}), lse_rows({1, 12, 1});
  Tensor<float, 3> grad({1, 12, 4}), grad_keys({1, 12, 4}), grad_values({1, 12, 4});
  const Tensor<float, 2> lse({1, 12});
  const std::vector<Index> offsets = {0, 6, 12};
  grad(0, 0, 0) = 7;
  EXPECT_THROW(packed_attention_backward(rows, rows, rows, PackedOffsets{offsets, offsets},
                                         masks::SlidingWindow{-5, 0}, rows, lse, rows, grad,
                                         grad_keys, grad_values),
               InvalidArgument);
  EXPECT_EQ(grad(0, 0, 0), 7);
}

}  // namespace
}  // namespace heed::test
