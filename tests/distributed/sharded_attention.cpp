// SPDX-License-Identifier: MIT
#include <heed/tensor/copy.hpp>

#include "distributed/ranks.hpp"

namespace heed::test {
namespace {

/// This rank's rows of a call over all ranks equal those of one process, in every bit.
template <class T, class M>
void expect_one_process(const Shape& shape, const Inputs<T>& in, const M& mask,
                        const AttentionShards& shards, AttentionOptions<T> options = {}) {
  const Communicator& ranks = *world();
  const Index me = ranks.rank();
  const auto whole = fused(shape, in, mask, options);
  Result<T> part(shard_of(shape, shards, me));
  part.out.fill(std::numeric_limits<T>::quiet_NaN());
  Tensor<T, 4> bias;
  if (options.bias.given() && options.bias.view().extent(2) > 1) {
    bias = shard_of(Tensor<T, 4>::copy_of(options.bias.view()), shards.queries, me);
    options.bias = bias;
  }
  options.log_sum_exp = part.lse;
  sharded_attention(ranks, shards, shard_of(in.queries, shards.queries, me),
                    shard_of(in.keys, shards.keys, me), shard_of(in.values, shards.keys, me), mask,
                    part.out, options);
  EXPECT_TRUE(same_bits(part.out, shard_of(whole.out, shards.queries, me)));
  EXPECT_TRUE(same_bits(part.lse, shard_of(whole.lse, shards.queries, me)));
}

TEST(ShardedAttention, EveryMaskGivesTheBitsOfOneProcess) {
  const RestoreSettings restore;
  const Shape shape{2, 2, 1, 1700, 1700, 5, 3};
  const Inputs<float> in(shape, 5);
  for_each_mask_and_shards(1700, [&](const auto& mask, const TokenShards& shards) {
    expect_one_process(shape, in, mask, shards);
  });
}

TEST(ShardedAttention, AnyShardsOfALongSequence) {
  const RestoreSettings restore;
  const Shape shape{1, 2, 2, 7000, 7000, 4, 4};
  const Inputs<float> in(shape, 6);
  for (Index kind = 0; kind < 6; ++kind) {
    SCOPED_TRACE(kind);
    const auto shards = shards_of_kind(7000, world()->size(), kind);
    set_thread_count(1 + kind % 2);
    expect_one_process(shape, in, masks::Causal{}, shards);
    expect_one_process(shape, in, masks::last_n(100), shards);
  }
}

TEST(ShardedAttention, NumbersRoundedToBfloat16) {
  const RestoreSettings restore;
  const Shape shape{1, 4, 2, 900, 3300, 20, 12};
  const Inputs<float> in(shape, 9);
  for (Index kind = 0; kind < 6; ++kind) {
    SCOPED_TRACE(kind);
    const Index size = world()->size();
    const AttentionShards shards(shards_of_kind(900, size, kind), shards_of_kind(3300, size, kind));
    expect_one_process(shape, in, masks::Causal{}, shards, {.products = Products::bfloat16});
    expect_one_process(shape, in, masks::last_n(300), shards,
                       {.products = Products::bfloat16, .softcap = 3.f});
  }
}

TEST(ShardedAttention, ChangesOfScoresSeeTheWholeSequence) {
  const RestoreSettings restore;
  const Shape shape{1, 4, 2, 900, 1700, 6, 8};
  const Inputs<float> in(shape, 7);
  const Changes<float> changes(shape, 3);
  const Index size = world()->size();
  for_each_change_and_shards(changes, 900, 1700, [&](const auto& options, const auto& shards) {
    expect_one_process(shape, in, masks::Causal{}, shards, options);
  });
  auto options = changes.options(Changes<float>::all);
  options.scale = 0.3f;
  options.first_query = 17;
  expect_one_process(shape, in, masks::SlidingWindow{.left = 300, .right = 20},
                     {shards_of_kind(900, size, 4), shards_of_kind(1700, size, 2)}, options);
}

TEST(ShardedAttention, OtherTypesAndPositions) {
  const Index size = world()->size();
  const Shape shape{2, 3, 1, 40, 1600, 7, 9};
  const Inputs<double> in(shape, 8);
  AttentionOptions<double> options;
  options.key_counts = {1599, 20};
  const AttentionShards shards(shards_of_kind(40, size, 0), shards_of_kind(1600, size, 3));
  expect_one_process(shape, in, masks::Causal{}, shards, options);
  options.first_queries = {800, -5};
  expect_one_process(shape, in, masks::Causal{}, shards, options);
  // One query, whose rank holds no key.
  const Shape one{1, 4, 2, 1, 3200, 8, 8};
  expect_one_process(one, Inputs<float>(one, 9), masks::Full{},
                     {shards_of_kind(1, size, 0), shards_of_kind(3200, size, 5)});
  const Shape none{1, 1, 1, 50, 0, 4, 4};
  expect_one_process(none, Inputs<float>(none, 9), masks::Full{},
                     {shards_of_kind(50, size, 0), shards_of_kind(0, size, 0)});
}

TEST(ShardedAttention, Bfloat16TravelsAsItIsStored) {
  const Communicator& ranks = *world();
  const Shape shape{1, 2, 1, 500, 1700, 16, 16};
  const Inputs<float> in(shape, 10);
  const auto rounded = [](const Tensor<float, 4>& from) {
    Tensor<bfloat16, 4> to(from.extents());
    for (Index i = 0; i < from.size(); ++i) to.data()[i] = bfloat16(from.data()[i]);
    return to;
  };
  const auto q = rounded(in.queries), k = rounded(in.keys), v = rounded(in.values);
  const auto whole = attention(q, k, v, masks::Causal{});
  const AttentionShards shards(shards_of_kind(500, ranks.size(), 1),
                               shards_of_kind(1700, ranks.size(), 2));
  const auto mine = shard_of(q, shards.queries, ranks.rank());
  Tensor<bfloat16, 4> out(mine.extents());
  sharded_attention(ranks, shards, mine, shard_of(k, shards.keys, ranks.rank()),
                    shard_of(v, shards.keys, ranks.rank()), masks::Causal{}, out);
  EXPECT_TRUE(same_bits(out, shard_of(whole, shards.queries, ranks.rank())));
}

/// The bytes that all ranks send in a call of 8 chunks of keys.
template <class M>
Index bytes_of(const M& mask) {
  const Communicator& ranks = *world();
  const auto shards = TokenShards::even(8 * simd::key_chunk, ranks.size());
  const Tensor<float, 3> mine({2, shards.count(ranks.rank()), 4});
  Tensor<float, 3> out(mine.extents());
  const auto before = ranks.bytes_sent();
  sharded_attention(ranks, shards, mine, mine, mine, mask, out);
  Tensor<Index, 1> sent({Index{1}});
  sent(0) = static_cast<Index>(ranks.bytes_sent() - before);
  Tensor<Index, 2> all({ranks.size(), 1});
  ranks.all_gather(sent, all);
  Index sum = 0;
  for (const Index each : all) sum += each;
  return sum;
}

TEST(ShardedAttention, KeysGoToTheRanksThatSeeThemAndNoOthers) {
  const Index size = world()->size(), chunk = simd::key_chunk * 2 * (4 + 4) * 4, all = 8 * chunk;
  EXPECT_EQ(bytes_of(masks::Full{}), all * (size - 1));
  if (size == 4) {
    EXPECT_EQ(bytes_of(masks::Causal{}), all / 4 * (3 + 2 + 1));
    // The last chunk of a shard is seen by the first queries of the next one.
    EXPECT_EQ(bytes_of(masks::last_n(100)), 3 * chunk);
    EXPECT_EQ(bytes_of(masks::Segments({0, 2 * simd::key_chunk, 4 * simd::key_chunk,
                                        6 * simd::key_chunk, 8 * simd::key_chunk})),
              0);
  }
}

TEST(ShardedAttention, WhatIsWrongOnOneRankIsRefusedOnAll) {
  const Communicator& ranks = *world();
  const Index size = ranks.size();
  const bool last = ranks.rank() + 1 == size;
  const std::string name =
      "sharded_attention over " + std::to_string(size) + " ranks: rank " + std::to_string(size - 1);
  const auto shards = TokenShards::even(10 * size, size);
  const Tensor<float, 3> mine({2, 10, 4});
  Tensor<float, 3> out(mine.extents());
  out.fill(5);
  const auto call = [&](const auto& q, const auto& mask, const AttentionOptions<float>& options) {
    return refusal([&] { sharded_attention(ranks, shards, q, mine, mine, mask, out, options); });
  };
  const Tensor<float, 3> wide({2, 10, last ? 5 : 4});
  EXPECT_EQ(call(wide, masks::Full{}, {}), name + ": attention: queries have head_dim 5, keys 4");
  const Tensor<float, 3> longer({2, last ? 11 : 10, 4});
  EXPECT_EQ(call(longer, masks::Full{}, {}), name + ": queries have 11 tokens, their shard 10");
  const auto unfit = call(mine, masks::Padding({1, 2}), {});
  EXPECT_NE(unfit.find(" ranks: rank 0: Padding: 2 lengths for"), std::string::npos) << unfit;
  if (size == 1) return;
  AttentionOptions<float> options;
  options.dropout = {.probability = 0.5f, .seed = last ? 8u : 7u};
  EXPECT_EQ(call(mine, masks::Full{}, options),
            name +
                " brings dropout (probability, seed, layer) 0.5 8 0, rank 0 dropout "
                "(probability, seed, layer) 0.5 7 0");
  options = {};
  options.scale = last ? 2.f : 1.f;
  EXPECT_EQ(call(mine, masks::Full{}, options), name + " brings scale 2, rank 0 scale 1");
  options = {};
  Tensor<float, 2> distances({1, 5});
  distances(0, 3) = last ? 2.f : 1.f;
  options.relative_bias = distances.view();
  const auto biased = call(mine, masks::Full{}, options);
  EXPECT_NE(biased.find(name + " brings relative_bias (1, 5) with fingerprint"), std::string::npos)
      << biased;
  const auto masked = call(mine, masks::last_n(last ? 3 : 4), {});
  EXPECT_NE(masked.find(name + " brings a mask with fingerprint"), std::string::npos) << masked;
  for (const float value : out) EXPECT_EQ(value, 5.f) << "nothing was written";
  EXPECT_EQ(call(mine, masks::Full{}, {}), "computed") << "the ranks still understand one another";
}

}  // namespace
}  // namespace heed::test
