// SPDX-License-Identifier: MIT
#include <heed/distributed/token_shards.hpp>

#include <gtest/gtest.h>

#include <string>

namespace heed::test {
namespace {

std::vector<TokenRange> ranges(const TokenShards& shards, Index rank) {
  return {shards.ranges(rank).begin(), shards.ranges(rank).end()};
}

TEST(TokenShards, EvenRunsDifferByOneTokenAtMost) {
  const auto shards = TokenShards::even(11, 3);
  EXPECT_EQ(shards.ranks(), 3);
  EXPECT_EQ(shards.tokens(), 11);
  EXPECT_EQ(ranges(shards, 0), (std::vector<TokenRange>{{0, 4}}));
  EXPECT_EQ(ranges(shards, 1), (std::vector<TokenRange>{{4, 8}}));
  EXPECT_EQ(ranges(shards, 2), (std::vector<TokenRange>{{8, 11}}));
  EXPECT_EQ(shards.count(2), 3);
}

TEST(TokenShards, EvenRunsBeginAtMultiplesOfAUnit) {
  const auto shards = TokenShards::even(25, 3, 10);
  EXPECT_EQ(ranges(shards, 0), (std::vector<TokenRange>{{0, 10}}));
  EXPECT_EQ(ranges(shards, 2), (std::vector<TokenRange>{{20, 25}}));
  EXPECT_EQ(TokenShards::even(25, 4, 10).count(3), 0);
  EXPECT_THROW(TokenShards::even(25, 3, 0), InvalidArgument);
}

TEST(TokenShards, ZigzagGivesEveryRankTheSameWorkUnderACausalMask) {
  const auto shards = TokenShards::zigzag(80, 4);
  EXPECT_EQ(ranges(shards, 1), (std::vector<TokenRange>{{10, 20}, {60, 70}}));
  EXPECT_EQ(ranges(shards, 3), (std::vector<TokenRange>{{30, 50}})) << "neighbors are one run";
  for (Index rank = 0; rank < 4; ++rank) {
    Index seen = 0;
    for (const TokenRange& range : shards.ranges(rank)) {
      for (Index query = range.first; query < range.end; ++query) seen += query + 1;
    }
    EXPECT_EQ(seen, 80 * 81 / 2 / 4) << rank;
  }
}

TEST(TokenShards, ZigzagInTurns) {
  const auto shards = TokenShards::zigzag(48, 3, 2);
  EXPECT_EQ(ranges(shards, 0), (std::vector<TokenRange>{{0, 4}, {20, 28}, {44, 48}}));
  EXPECT_EQ(ranges(shards, 1), (std::vector<TokenRange>{{4, 8}, {16, 20}, {28, 32}, {40, 44}}));
  EXPECT_EQ(ranges(shards, 2), (std::vector<TokenRange>{{8, 16}, {32, 40}}));
  EXPECT_EQ(TokenShards::zigzag(5, 2, 9).tokens(), 5);
  EXPECT_THROW(TokenShards::zigzag(5, 2, 0), InvalidArgument);
}

TEST(TokenShards, FewTokensLeaveRanksWithout) {
  EXPECT_EQ(TokenShards::even(2, 4).count(3), 0);
  EXPECT_TRUE(TokenShards::even(2, 4).ranges(3).empty());
  EXPECT_EQ(TokenShards::zigzag(1, 3).tokens(), 1);
  EXPECT_EQ(TokenShards({{{0, 8}, {20, 30}}, {{8, 20}}}).count(0), 18);
  EXPECT_EQ(TokenShards::of_sizes({0, 5, 0}).count(1), 5);
}

/// The message with which shards are refused.
std::string refused(std::vector<std::vector<TokenRange>> of_ranks) {
  try {
    TokenShards{std::move(of_ranks)};
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "taken";
}

TEST(TokenShards, EveryTokenLiesOnOneRank) {
  EXPECT_EQ(refused({{{0, 3}, {7, 9}}, {{3, 7}}}), "taken");
  EXPECT_EQ(refused({{{0, 3}}, {{4, 7}}}), "token shards: token 3 lies on no rank");
  EXPECT_EQ(refused({{{0, 5}}, {{4, 7}}}), "token shards: token 4 lies on two ranks");
  EXPECT_EQ(refused({{{4, 7}, {0, 4}}}),
            "token shards: [0, 4) after token 7; the ranges of a rank ascend");
  EXPECT_EQ(refused({{{0, -1}}}),
            "token shards: [0, -1) after token 0; the ranges of a rank ascend");
  EXPECT_THROW(TokenShards::even(-1, 2), InvalidArgument);
  EXPECT_THROW(TokenShards::zigzag(4, 0), InvalidArgument);
  EXPECT_THROW(TokenShards::of_sizes({-4}), InvalidArgument);
}

}  // namespace
}  // namespace heed::test
