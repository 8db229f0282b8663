// SPDX-License-Identifier: MIT
#include <heed/distributed/ring_schedule.hpp>

#include <gtest/gtest.h>

#include <heed/core/error.hpp>
#include <heed/masks.hpp>

namespace heed::test {
namespace {

constexpr Index chunk = simd::key_chunk;

double seconds_of(const std::vector<SimulatedRank>& ranks) {
  double last = 0;
  for (const SimulatedRank& rank : ranks) last = std::max(last, rank.end);
  return last;
}

TEST(RingSchedule, WaitsForTheFirstChunkAlone) {
  // Five ranks with a chunk each: the last one waits until chunk 0 has come past all others.
  const RingShape shape;
  const auto shards = TokenShards::even(5 * chunk, 5);
  const auto scores = scores_by_chunk(shards, shards, shape, masks::Full{});
  for (const double score : scores) EXPECT_EQ(score, static_cast<double>(chunk * chunk));
  const double move = 0.5 + static_cast<double>(chunk * shape.key_bytes()) / 1e6;
  const double compute = static_cast<double>(chunk * chunk) * 256 / 1e8;
  ASSERT_LT(move, compute);
  const auto ranks = simulate_ring(shards, shape, {0.5, 1e6, 1e8}, scores);
  EXPECT_NEAR(seconds_of(ranks), 5 * compute + 4 * move, 1e-9 * compute);
  EXPECT_NEAR(ranks[0].computing, 5 * compute, 1e-9 * compute);
  EXPECT_EQ(ranks[3].bytes_sent, 4 * chunk * shape.key_bytes());
  EXPECT_TRUE(ranks[0].trace.empty());
}

TEST(RingSchedule, LateKeysWaitForRoom) {
  // Rank 2 sends four messages, but none in the time of the first one: rank 0 gets chunk 2 from
  // rank 1 by then, and has no room for chunk 4 before it has passed on chunk 0.
  const RingShape shape;
  const auto shards = TokenShards::even(6 * chunk, 3);
  const auto scores = scores_by_chunk(shards, shards, shape, masks::Full{});
  const auto ranks = simulate_ring(shards, shape, {0, 1e6, 1e18}, scores, true);
  const double move = static_cast<double>(chunk * shape.key_bytes()) / 1e6;
  EXPECT_NEAR(seconds_of(ranks), 5 * move, 1e-6 * move);
  for (const SimulatedRank& rank : ranks) {
    EXPECT_EQ(rank.bytes_sent, 4 * chunk * shape.key_bytes());
    EXPECT_EQ(rank.most_chunks, 4);
    EXPECT_EQ(rank.trace.size(), 6u + 4 + 4);
  }
}

TEST(RingSchedule, ManyTurnsKeepAllRanksBusyUnderACausalMask) {
  // The ring waits for the rank that has most to do with a chunk: with two long runs for each rank
  // that takes 3 n of the 2 n + 1 that each has to do.
  const RingShape shape;
  const Index tokens = 128 * chunk, ranks = 8;
  const auto busy = [&](Index turns) {
    const auto shards = TokenShards::zigzag(tokens, ranks, turns);
    const auto scores = scores_by_chunk(shards, shards, shape, masks::Causal{});
    const auto told = simulate_ring(shards, shape, {1e-6, 1e12, 1e9}, scores);
    return told[0].computing / seconds_of(told);
  };
  EXPECT_NEAR(busy(1), 17.0 / 24, 0.06);
  EXPECT_GT(busy(8), 0.95);
}

TEST(RingSchedule, RunsUnderAWindowDoNotWaitForOneAnother) {
  // The last keys of a run go to the next rank before their owner has come to them.
  const RingShape shape;
  const Index ranks = 8;
  const auto shards = TokenShards::even(16 * ranks * chunk, ranks);
  const auto scores = scores_by_chunk(shards, shards, shape, masks::last_n(2 * chunk));
  const auto told = simulate_ring(shards, shape, {1e-6, 1e12, 1e9}, scores);
  for (const SimulatedRank& rank : told) EXPECT_GT(rank.computing, 0.99 * rank.end);
}

TEST(RingSchedule, ALargeWorldSendsWhatItsMaskLetsItSee) {
  const RingShape shape{1, 8, 2, 128, 128, 2};
  const Index tokens = 300000, ranks = 64;
  const auto shards = TokenShards::zigzag(tokens, ranks);
  const auto bytes = [&](const auto& mask) {
    const auto scores = scores_by_chunk(shards, shards, shape, mask);
    Index sum = 0;
    for (const auto& rank : simulate_ring(shards, shape, {1e-5, 1e9, 1e11}, scores)) {
      sum += rank.bytes_sent;
    }
    return static_cast<double>(sum) / static_cast<double>(tokens * shape.key_bytes());
  };
  EXPECT_EQ(bytes(masks::Full{}), ranks - 1);
  // A rank sees all keys up to its late tokens: between a half and all of the sequence.
  EXPECT_NEAR(bytes(masks::Causal{}), 0.75 * ranks, 0.02 * ranks);
  EXPECT_LT(bytes(masks::last_n(1024)), 2);
  EXPECT_EQ(bytes(masks::Segments(std::vector<Index>{0, tokens})), ranks - 1);
}

TEST(RingSchedule, ChargesTheTilesThatAreComputed) {
  const auto shards = TokenShards::of_sizes({128, 64});
  const auto scores = scores_by_chunk(shards, shards, RingShape{1, 3}, masks::Causal{});
  EXPECT_EQ(scores.extents(), (Extents<2>{2, 1}));
  EXPECT_EQ(scores(0, 0), 3 * (64 * 96 + 64 * 192));  // three heads; keys in blocks of 96
  EXPECT_EQ(scores(1, 0), 3 * 64 * 192);
}

TEST(RingSchedule, RefusesWhatDoesNotFit) {
  const auto shards = TokenShards::even(10, 2);
  const auto scores = scores_by_chunk(shards, shards, RingShape{}, masks::Full{});
  EXPECT_THROW(simulate_ring(TokenShards::even(10, 3), {}, {}, scores), InvalidArgument);
  EXPECT_THROW(simulate_ring(shards, {}, {.latency = -1}, scores), InvalidArgument);
  EXPECT_THROW(simulate_ring(shards, {}, {.bandwidth = 0}, scores), InvalidArgument);
  EXPECT_THROW(simulate_ring(shards, {}, {.flops = 0}, scores), InvalidArgument);
}

}  // namespace
}  // namespace heed::test
