// SPDX-License-Identifier: MIT
#include <heed/attention/options.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include <heed/attention/forward.hpp>
#include <heed/attention/relative_bias.hpp>
#include <heed/masks/intervals.hpp>

namespace heed {
namespace {

TEST(Bias, ExtentsOfOneAreRepeated) {
  const Tensor<float, 3> per_head({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const auto bias = detail::broadcast_bias<float>(per_head, {5, 2, 7, 3});
  EXPECT_EQ(bias.view().extents(), (Extents<4>{5, 2, 7, 3}));
  EXPECT_EQ(bias.view()(4, 1, 6, 2), 6.f);
  EXPECT_EQ(bias.view()(0, 0, 3, 1), 2.f);
  EXPECT_FALSE(detail::broadcast_bias<float>({}, {1, 2, 3, 4}).given());
}

TEST(Bias, OtherExtentsAreRefused) {
  const Tensor<double, 2> bias({4, 5});
  EXPECT_THROW(detail::broadcast_bias<double>(bias, {1, 1, 4, 6}), ShapeError);
}

TEST(Options, OutliveTheArraysTheyWereMadeOf) {
  AttentionOptions<float> options;
  options.alibi_slopes = alibi_slopes<float>(2);
  options.sinks = std::vector<float>{1, 2};
  options.first_queries = std::vector<Index>{3, 4};
  options.key_counts = std::vector<Index>{5, 6};
  const Tensor<float, 1> others[] = {Tensor<float, 1>({2}, {-1e9f, 7}),
                                     Tensor<float, 1>({2}, {-1e9f, 7})};
  const std::vector<float> more{-1, -2};
  const std::vector<Index> most{-3, -4}, rest{-5, -6};
  EXPECT_EQ(options.alibi_slopes[0], 1 / 16.f);
  EXPECT_EQ(options.alibi_slopes[1], 1 / 256.f);
  EXPECT_EQ(options.sinks[1], 2);
  EXPECT_EQ(options.first_queries[0], 3);
  EXPECT_EQ(options.key_counts[1], 6);
}

/// A function of many numbers that end with this call.
AttentionOptions<float> options_with_a_function() {
  const std::array<double, 16> numbers{1, 2, 3, 4};
  AttentionOptions<float> options;
  options.score_function = [numbers](float score, Position at) {
    return score + static_cast<float>(numbers[static_cast<std::size_t>(at.key)]);
  };
  return options;
}

TEST(Options, OutliveTheFunctionTheyWereMadeOf) {
  const auto options = options_with_a_function();
  const Tensor<float, 4> q({1, 1, 3, 4}), v({1, 1, 3, 1}, {1, 0, 0});
  const auto out = attention(q, q, v, masks::Causal{}, options);
  EXPECT_EQ(out(0, 0, 0, 0), 1);
  EXPECT_NEAR(out(0, 0, 1, 0), 1 / (1 + std::exp(1.f)), 1e-6f);
  EXPECT_NEAR(out(0, 0, 2, 0), 1 / (1 + std::exp(1.f) + std::exp(2.f)), 1e-6f);
}

}  // namespace
}  // namespace heed
