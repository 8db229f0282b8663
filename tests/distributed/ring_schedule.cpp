// SPDX-License-Identifier: MIT
#include <algorithm>
#include <tuple>

#include <heed/distributed/ring_schedule.hpp>

#include "distributed/ranks.hpp"

namespace heed::test {
namespace {

using Kind = RingEvent::Kind;

/// What the events of one kind are, without their times.
using Moved = std::tuple<Index, Index, Index, Index, Index>;
std::vector<Moved> all_of(Kind kind, const RingTrace& trace) {
  std::vector<Moved> found;
  for (const RingEvent& event : trace) {
    if (event.kind != kind) continue;
    found.emplace_back(event.chunk, event.keys.first, event.keys.end, event.other, event.bytes);
  }
  return found;
}

/// What holds in every trace, real or simulated: a chunk is computed when all of it is here, after
/// the one before; a piece of others goes on when it is here; and no more than four chunks take
/// memory.
void expect_rules(const RingTrace& trace) {
  std::vector<Index> chunks;
  std::vector<TokenRange> received;
  for (const RingEvent& event : trace) {
    if (event.kind == Kind::compute) chunks.push_back(event.chunk);
    if (event.kind == Kind::receive) received.push_back(event.keys);
  }
  EXPECT_TRUE(std::is_sorted(chunks.begin(), chunks.end()));
  const auto step = [&](const RingEvent& event) {
    return std::lower_bound(chunks.begin(), chunks.end(), event.chunk) - chunks.begin();
  };
  const auto own = [&](const RingEvent& event) {
    return event.kind == Kind::send &&
           std::find(received.begin(), received.end(), event.keys) == received.end();
  };
  for (const RingEvent& one : trace) {
    EXPECT_LE(one.begin, one.end);
    for (const RingEvent& other : trace) {
      if (own(one) || own(other)) continue;
      const bool computes = other.kind == Kind::compute;
      const bool computed_then = one.kind == Kind::compute && one.chunk < other.chunk;
      const bool here_first = one.kind == Kind::receive && one.chunk == other.chunk;
      const bool passed_on = other.kind == Kind::send && one.keys == other.keys;
      if ((computed_then && computes) || (here_first && (passed_on || computes)) ||
          step(one) + 4 <= step(other)) {
        EXPECT_LE(one.end, other.begin) << "chunks " << one.chunk << " and " << other.chunk;
      }
    }
  }
}

/// The trace of a real call and that of the schedule have the same events in the same order.
template <class M>
void expect_schedule(const Shape& shape, const M& mask, const AttentionShards& shards) {
  const Communicator& ranks = *world();
  const Index me = ranks.rank();
  const Inputs<float> in(shape, 5);
  const auto queries = shard_of(in.queries, shards.queries, me);
  Tensor<float, 4> out({shape.batch, shape.heads, queries.extent(2), shape.value_dim});
  RingTrace trace;
  const auto before = ranks.bytes_sent();
  sharded_attention(ranks, shards, queries, shard_of(in.keys, shards.keys, me),
                    shard_of(in.values, shards.keys, me), mask, out, {}, &trace);
  const RingShape sizes{shape.batch, shape.heads, shape.kv_heads, shape.head_dim, shape.value_dim};
  const auto scores = scores_by_chunk(shards.queries, shards.keys, sizes, mask);
  const auto all = simulate_ring(shards.keys, sizes, {1e-5, 1e9, 1e9}, scores, true);
  const SimulatedRank& mine = all[static_cast<std::size_t>(me)];
  EXPECT_EQ(static_cast<std::uint64_t>(mine.bytes_sent), ranks.bytes_sent() - before);
  EXPECT_EQ(all_of(Kind::compute, mine.trace), all_of(Kind::compute, trace));
  EXPECT_EQ(all_of(Kind::receive, mine.trace), all_of(Kind::receive, trace));
  auto sent = all_of(Kind::send, trace), expected = all_of(Kind::send, mine.trace);
  std::sort(sent.begin(), sent.end());  // messages leave in the order in which they arrived
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(expected, sent);
  EXPECT_LE(mine.most_chunks, 4);
  expect_rules(trace);
  expect_rules(mine.trace);
}

TEST(RingSchedule, MovesTheBytesOfARealRingUnderEveryMask) {
  const Shape shape{2, 2, 1, 1700, 1700, 2, 3};
  for_each_mask_and_shards(1700, [&](const auto& mask, const TokenShards& shards) {
    expect_schedule(shape, mask, shards);
  });
}

TEST(RingSchedule, OrdersALongCallAsARealRing) {
  const Index size = world()->size();
  const Shape shape{1, 2, 1, 9000, 15000, 2, 2};
  for (Index kind = 0; kind < 6; ++kind) {
    SCOPED_TRACE(kind);
    const AttentionShards shards(shards_of_kind(9000, size, kind),
                                 shards_of_kind(15000, size, kind / 2 + 1));
    expect_schedule(shape, masks::Causal{}, shards);
    expect_schedule(shape, masks::last_n(100), shards);
  }
}

}  // namespace
}  // namespace heed::test
