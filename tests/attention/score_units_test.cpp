// SPDX-License-Identifier: MIT
#include <heed/attention/detail/call.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace heed::detail {
namespace {

TEST(ScoreUnits, QueriesAreMultipliedIntoTheKernelsUnits) {
  AttentionArgs<double> args;
  args.scale = 0.5;
  EXPECT_DOUBLE_EQ(query_factor(args), 0.5 * bits_per_nat);
  args.score_mods.softcap = 10;
  EXPECT_DOUBLE_EQ(query_factor(args), 0.1 * bits_per_nat);
  const auto same = [](double score, Position) { return score; };
  args.score_mods.function = same;
  EXPECT_DOUBLE_EQ(query_factor(args), 0.1 * bits_per_nat) << "the softcap comes first";
  args.score_mods.softcap = 0;
  EXPECT_EQ(query_factor(args), 0.5) << "a function sees natural units";
  EXPECT_DOUBLE_EQ(bits_per_nat * nats_per_bit, 1);
}

TEST(ScoreUnits, AScoreIsInRangeOrInfinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(within_range(2.3e38f), 2.3e38f);
  EXPECT_EQ(within_range(2.4e38f), infinity);
  EXPECT_EQ(within_range(-2.4e38f), -infinity);
  EXPECT_EQ(within_range(-infinity), -infinity);
  EXPECT_NE(within_range(infinity - infinity), within_range(infinity - infinity));
}

}  // namespace
}  // namespace heed::detail
