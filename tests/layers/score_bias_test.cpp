// SPDX-License-Identifier: MIT
#include <heed/layers/multi_head_attention.hpp>

#include <cmath>

#include <heed/masks/intervals.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

TEST(ScoreBias, StartsAtNothing) {
  EXPECT_FALSE(ScoreBias<float>(MultiHeadAttentionOptions{}).relative);
  const ScoreBias<float> learned(MultiHeadAttentionOptions{
      .heads = 2, .positions = PositionKind::relative, .relative_reach = 3});
  EXPECT_EQ(learned.relative->extents(), (Extents<2>{2, 7}));
  for (const float value : *learned.relative) EXPECT_EQ(value, 0);
  const ScoreBias<double> alibi(
      MultiHeadAttentionOptions{.heads = 2, .positions = PositionKind::alibi});
  EXPECT_TRUE(same_bits(alibi.slopes, alibi_slopes<double>(2)));
}

/// Weights of a layer whose queries and keys are 0 are the softmax of its bias.
TEST(ScoreBias, IsAddedByDistanceHeldAtTheEnds) {
  Random random(1);
  MultiHeadAttention<double> layer({.model_dim = 4,
                                    .heads = 2,
                                    .bias = false,
                                    .positions = PositionKind::relative,
                                    .relative_reach = 2},
                                   random);
  for (double& value : layer.projections.query->weight) value = 0;
  auto& bias = *layer.score_bias.relative;
  for (Index i = 0; i < bias.size(); ++i) bias.data()[i] = 0.3 * static_cast<double>(i * i % 7);
  Tensor<double, 3> x({1, 6, 4});
  for (double& value : x) value = random.normal();
  const auto weights = layer.weights(x, x, masks::Full{});
  for (Index head = 0; head < 2; ++head) {
    for (Index query = 0; query < 6; ++query) {
      double sum = 0;
      const auto power = [&](Index key) {
        const Index distance = std::clamp<Index>(key - query, -2, 2);
        return std::exp(bias(head, distance + 2));
      };
      for (Index key = 0; key < 6; ++key) sum += power(key);
      for (Index key = 0; key < 6; ++key) {
        EXPECT_NEAR(weights(0, head, query, key), power(key) / sum, 1e-14);
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
