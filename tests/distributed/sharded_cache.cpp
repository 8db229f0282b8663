// SPDX-License-Identifier: MIT
#include <heed/distributed/sharded_cache.hpp>

#include "distributed/ranks.hpp"

namespace heed::test {
namespace {

/// Which rank stores which of up to `tokens` positions: runs of chunks of any sizes.
TokenShards placement_of_kind(Index tokens, Index kind) {
  const Index size = world()->size(), chunk = simd::key_chunk;
  const Index chunks = detail::parts_of(tokens, chunk);
  const TokenShards of_chunks = shards_of_kind(chunks, size, kind == 4 ? 0 : kind);
  std::vector<std::vector<TokenRange>> of_ranks(static_cast<std::size_t>(size));
  for (Index rank = 0; rank < size; ++rank) {
    for (const TokenRange& range : of_chunks.ranges(rank)) {
      for (Index i = range.first; i < range.end; ++i) {
        const Index to = kind == 4 ? i % size : rank;  // 4: in turns
        of_ranks[static_cast<std::size_t>(to)].push_back(
            {i * chunk, std::min(tokens, (i + 1) * chunk)});
      }
    }
  }
  for (auto& ranges : of_ranks) {
    std::sort(ranges.begin(), ranges.end(),
              [](const TokenRange& a, const TokenRange& b) { return a.first < b.first; });
  }
  return TokenShards(std::move(of_ranks));
}

/// The tokens [first, end) of a tensor.
template <class T>
Tensor<T, 4> tokens_of(const Tensor<T, 4>& whole, Index first, Index end) {
  return Tensor<T, 4>::copy_of(whole.view().slice(2, first, end));
}

/// A cache of the keys and values: a prompt that lies on the ranks in any shards, and the rest.
template <class Stored, class T>
ShardedCache<T, Stored> filled(const Shape& shape, const Inputs<T>& in, const TokenShards& shards,
                               Index kind) {
  const Communicator& ranks = *world();
  const CacheShape of_cache{shape.batch,     shape.kv_heads,          shape.head_dim,
                            shape.value_dim, kind % 2 == 0 ? 96 : 64, 0};
  ShardedCache<T, Stored> cache(ranks, placement_of_kind(shape.keys + 700, kind % 6), of_cache);
  const Index prompt = shards.tokens(), more = (shape.keys - prompt) / 2;
  const auto keys = tokens_of(in.keys, 0, prompt), values = tokens_of(in.values, 0, prompt);
  cache.append(ranks, shards, shard_of(keys, shards, ranks.rank()),
               shard_of(values, shards, ranks.rank()));
  for (const Index first : {prompt, prompt + more}) {
    const Index end = first == prompt ? prompt + more : shape.keys;
    cache.append(tokens_of(in.keys, first, end), tokens_of(in.values, first, end));
  }
  return cache;
}

/// Every rank gets all rows of one process, in every bit.
template <class T, class Cache, class M>
void expect_one_process(const Shape& shape, const Inputs<T>& in, const M& mask, const Cache& cache,
                        AttentionOptions<T> options = {}) {
  const auto whole = fused(shape, in, mask, options);
  Result<T> got(shape);
  got.out.fill(std::numeric_limits<T>::quiet_NaN());
  options.log_sum_exp = got.lse;
  sharded_attention(*world(), in.queries, cache, mask, got.out, options);
  EXPECT_TRUE(same_bits(got.out, whole.out));
  EXPECT_TRUE(same_bits(got.lse, whole.lse));
}

TEST(ShardedCache, EveryMaskGivesTheBitsOfOneProcess) {
  const Shape shape{2, 2, 1, 70, 4700, 5, 3};
  const Inputs<float> in(shape, 5);
  Index kind = 0, refused = 0;
  for_each_mask_and_shards(4700, [&](const auto& mask, const TokenShards& shards) {
    const auto cache = filled<float>(shape, in, shards, kind++);
    for (const Index queries : {1, 5, 70}) {
      Shape some = shape;
      some.queries = queries;
      Inputs<float> of_some = in;
      of_some.queries = tokens_of(in.queries, 0, queries);
      try {
        expect_one_process(some, of_some, mask, cache);
      } catch (const ShapeError&) {  // a Dense mask has a row for each of 4,700 queries
        ++refused;
      }
    }
  });
  EXPECT_LE(refused, 6);
  const Shape all{2, 2, 1, 1700, 1700, 5, 3};
  const Inputs<float> others(all, 5);
  std::mt19937_64 bits(2);
  Tensor<bool, 2> seen({1700, 1700});
  for (bool& each : seen) each = bits() % 3 == 0;
  const auto shards = TokenShards::zigzag(1700, world()->size());
  expect_one_process(all, others, masks::Dense(seen), filled<float>(all, others, shards, 0));
}

TEST(ShardedCache, APromptInShardsAndThenTokensThatAllRanksHave) {
  const Communicator& ranks = *world();
  const Shape shape{1, 4, 2, 10, 3200, 8, 8};
  const Inputs<float> in(shape, 4);
  const auto shards = TokenShards::zigzag(3190, ranks.size());
  const auto part = [&](const Tensor<float, 4>& whole) {
    return shard_of(tokens_of(whole, 0, 3190), shards, ranks.rank());
  };
  const auto keys = part(in.keys), values = part(in.values);
  const auto more_keys = tokens_of(in.keys, 3190, 3200);
  const auto more_values = tokens_of(in.values, 3190, 3200);
  const auto& queries = in.queries;
  Tensor<float, 4> out(queries.extents());
  const Index most_tokens = 5000;
  // [decode]
  const auto places = TokenShards::even(most_tokens, ranks.size(), simd::key_chunk);
  ShardedCache<float> cache(ranks, places, {.kv_heads = 2, .head_dim = 8});
  cache.append(ranks, shards, keys, values);  // a prompt, which lies on the ranks in any shards
  cache.append(more_keys, more_values);       // tokens that every rank has: each stores its own
  sharded_attention(ranks, queries, cache, masks::Causal{}, out);
  // [/decode]
  EXPECT_TRUE(same_bits(out, fused(shape, in, masks::Causal{}).out));
}

TEST(ShardedCache, ChangesOfScoresSeeTheWholeSequence) {
  const Shape shape{1, 4, 2, 3, 3300, 6, 8};
  const Inputs<float> in(shape, 7);
  const Changes<float> changes(shape, 3);
  for_each_change_and_shards(changes, 3000, 3300, [&](const auto& options, const auto& shards) {
    const auto cache = filled<float>(shape, in, shards.queries, 1);
    expect_one_process(shape, in, masks::Causal{}, cache, options);
  });
  const Shape many{1, 4, 2, 130, 3300, 6, 8};
  const Inputs<double> wide(many, 7);
  const Changes<double> others(many, 3);
  auto options = others.options(Changes<double>::all);
  options.first_query = 2000;
  expect_one_process(many, wide, masks::Causal{},
                     filled<double>(many, wide, TokenShards::even(0, world()->size()), 4), options);
}

TEST(ShardedCache, Bfloat16IsStoredAndComputedAsInOneProcess) {
  const Index size = world()->size();
  const Shape shape{1, 4, 2, 2, 3300, 16, 16};
  Inputs<float> in(shape, 9);
  Tensor<bfloat16, 4> queries(in.queries.extents());
  for (auto* tensor : {&in.queries, &in.keys, &in.values}) {
    for (float& value : *tensor) value = static_cast<float>(bfloat16(value));
  }
  for (Index i = 0; i < queries.size(); ++i) queries.data()[i] = bfloat16(in.queries.data()[i]);
  const auto cache = filled<bfloat16>(shape, in, shards_of_kind(2000, size, 2), 0);
  expect_one_process(shape, in, masks::Causal{}, cache);
  KeyValueCache<float, bfloat16> one(CacheShape{1, 2, 16, 16, 96, 40});
  one.append(in.keys, in.values);
  const auto whole = attention(queries, one, masks::last_n(1700));
  Tensor<bfloat16, 4> out(whole.extents());
  sharded_attention(*world(), queries, cache, masks::last_n(1700), out);
  EXPECT_TRUE(same_bits(out, whole));
}

TEST(ShardedCache, SequencesOfTheirOwnLengthsGrowAndShrink) {
  const Communicator& ranks = *world();
  const Shape shape{3, 2, 1, 2, 3300, 4, 4};
  const Inputs<float> in(shape, 8);
  auto cache = filled<float>(shape, in, TokenShards::even(0, ranks.size()), 2);
  cache.truncate(0, 1600);
  cache.truncate(1, 0);
  AttentionOptions<float> options;
  options.key_counts = {1600, 0, 3300};
  expect_one_process(shape, in, masks::Causal{}, cache, options);
  const auto none = tokens_of(in.keys, 0, 0), more = tokens_of(in.keys, 100, 150);
  EXPECT_NE(refusal([&] {
              cache.append(ranks, TokenShards::even(0, ranks.size()), none, none);
            }).find("shards of a cache with sequences of 1600 and 0 tokens"),
            std::string::npos);
  cache.append(more, more);
  EXPECT_EQ(cache.lengths()[0], 1650);
  const Shape longer{3, 2, 1, 2, 3350, 4, 4};
  Inputs<float> after(longer, 8);
  after.queries = in.queries;
  for (Index item = 0; item < 3; ++item) {
    const Index length =
        std::array{Index{1600}, Index{0}, Index{3300}}[static_cast<std::size_t>(item)];
    for (auto* pair : {&after.keys, &after.values}) {
      const auto& from = pair == &after.keys ? in.keys : in.values;
      copy(from.view().select(0, item).slice(1, 0, length),
           pair->view().select(0, item).slice(1, 0, length));
      copy(more.view().select(0, item), pair->view().select(0, item).slice(1, length, length + 50));
    }
  }
  options.key_counts = {1650, 50, 3350};
  expect_one_process(longer, after, masks::Causal{}, cache, options);
}

TEST(ShardedCache, KeysStayAndOneTotalTravels) {
  const Communicator& ranks = *world();
  const Index size = ranks.size(), tokens = size * simd::key_chunk;
  const Shape shape{1, 4, 2, 1, tokens, 8, 16};
  const Inputs<float> in(shape, 6);
  const auto cache = filled<float>(shape, in, TokenShards::even(0, size), 0);
  const auto sent_by = [&](const auto& mask) {
    const auto before = ranks.bytes_sent();
    expect_one_process(shape, in, mask, cache);
    return static_cast<Index>(ranks.bytes_sent() - before);
  };
  const Index total = (4 * 16 + 16) * 4;  // 4 rows of 16 numbers, their maxima and sums in 16 more
  const Index holders = cache.owner(size - 1) + 1;
  EXPECT_EQ(sent_by(masks::Full{}), ranks.rank() + 1 < holders ? total : 0);
  EXPECT_EQ(sent_by(masks::last_n(100)), 0) << "the last rank alone computes";
}

TEST(ShardedCache, WhatIsWrongOnOneRankIsRefusedOnAll) {
  const Communicator& ranks = *world();
  const Index size = ranks.size();
  const bool last = ranks.rank() + 1 == size;
  const auto room = TokenShards::even(5000, size, simd::key_chunk);
  const CacheShape shape{1, 1, 4};
  EXPECT_EQ(refusal([&] { ShardedCache<float>(ranks, TokenShards::even(5000, size + 1), shape); }),
            "ShardedCache: shards for " + std::to_string(size + 1) + " ranks among " +
                std::to_string(size));
  EXPECT_EQ(refusal([&] {
              ShardedCache<float>(ranks, room, CacheShape{1, 1, 4, 4, 80});
            }),
            "ShardedCache: pages of 80 tokens, expected 16 or more that divide chunks of 1536");
  if (size > 1) {
    EXPECT_EQ(refusal([&] { ShardedCache<float>(ranks, TokenShards::even(4000, size), shape); }),
              "ShardedCache: shards are cut inside the chunk of 1536 positions that begins at " +
                  std::to_string(4000 / size / simd::key_chunk * simd::key_chunk));
  }
  ShardedCache<float> cache(ranks, room, shape);
  const Tensor<float, 4> some({1, 1, 4900, 4}), wrong({1, 1, 3, last ? 5 : 4});
  cache.append(some, some);
  EXPECT_THROW(cache.append(some, some), CacheFull);
  EXPECT_THROW(cache.truncate(0, 4901), ShapeError);
  const auto shards = TokenShards::even(3 * size, size);
  const std::string append = "ShardedCache::append over " + std::to_string(size) + " ranks: rank ";
  EXPECT_EQ(refusal([&] { cache.append(ranks, TokenShards::even(0, size), some, some); }),
            append + "0: keys have 4900 tokens, their shard 0");
  EXPECT_EQ(refusal([&] {
              cache.append(ranks, shards, wrong, wrong);
            }).find(append + std::to_string(size - 1) + ": KeyValueCache: keys "),
            0u);
  EXPECT_EQ(cache.lengths()[0], 4900);
  Tensor<float, 4> queries({1, 2, 1, 4}), out({1, 2, 1, 4});
  const auto call = [&] {
    return refusal([&] { sharded_attention(ranks, queries, cache, masks::Causal{}, out); });
  };
  EXPECT_EQ(call(), "computed");
  queries.fill(last ? 2.f : 1.f);
  if (size > 1) {
    EXPECT_NE(call().find("rank " + std::to_string(size - 1) + " brings queries with fingerprint"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace heed::test
