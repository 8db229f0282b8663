// SPDX-License-Identifier: MIT
#include "distributed/ranks.hpp"
#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

/// This rank's gradients of a call over all ranks equal those of one process, in every bit.
template <class T, class M>
void expect_gradients_of_one_process(const Shape& shape, const Inputs<T>& in, const M& mask,
                                     const AttentionShards& shards,
                                     const AttentionOptions<T>& options = {}) {
  const Communicator& ranks = *world();
  const Index me = ranks.rank();
  const Loss<T> loss(shape, 11);
  const auto forward = fused(shape, in, mask, options);
  Gradients<T> whole(shape);
  attention_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
                     whole.queries, whole.keys, whole.values, options);
  Gradients<T> part(shard_of(shape, shards, me));
  const auto of_query = [&](const auto& tensor) { return shard_of(tensor, shards.queries, me); };
  const auto of_key = [&](const auto& tensor) { return shard_of(tensor, shards.keys, me); };
  sharded_attention_backward(ranks, shards, of_query(in.queries), of_key(in.keys),
                             of_key(in.values), mask, of_query(forward.out), of_query(forward.lse),
                             of_query(loss.grad_out), part.queries, part.keys, part.values,
                             options);
  expect_shard_of(whole, shards, me, part);
}

TEST(ShardedBackward, EveryMaskGivesTheBitsOfOneProcess) {
  const RestoreSettings restore;
  const Shape shape{2, 2, 1, 1300, 1300, 5, 3};
  const Inputs<float> in(shape, 5);
  for_each_mask_and_shards(1300, [&](const auto& mask, const TokenShards& shards) {
    expect_gradients_of_one_process(shape, in, mask, shards);
  });
}

TEST(ShardedBackward, ChangesOfScoresAndOtherShards) {
  const RestoreSettings restore;
  const Shape shape{1, 4, 2, 1100, 1700, 6, 8};
  const Inputs<float> in(shape, 7);
  const Changes<float> changes(shape, 3, {1, 4, 1, 1700});
  const Index size = world()->size();
  for_each_change_and_shards(changes, 1100, 1700, [&](const auto& options, const auto& shards) {
    expect_gradients_of_one_process(shape, in, masks::Causal{}, shards, options);
  });
  const Shape few{2, 3, 1, 40, 1600, 7, 9};
  AttentionOptions<double> options;
  options.key_counts = {1599, 20};
  expect_gradients_of_one_process(few, Inputs<double>(few, 8), masks::Causal{},
                                  {shards_of_kind(40, size, 0), shards_of_kind(1600, size, 3)},
                                  options);
  const Shape none{1, 1, 1, 50, 0, 4, 4};
  expect_gradients_of_one_process(none, Inputs<float>(none, 9), masks::Full{},
                                  {shards_of_kind(50, size, 0), shards_of_kind(0, size, 0)});
}

TEST(ShardedBackward, ABiasForAllQueriesUnderAMaskWithHoles) {
  const RestoreSettings restore;
  const Shape shape{1, 2, 1, 200, 300, 6, 8};
  const Inputs<float> in(shape, 12);
  std::mt19937_64 bits(13);
  const auto bias = random_tensor<float, 4>({1, 2, 1, 300}, bits);
  const Index size = world()->size();
  const auto mask = masks::predicate([](Index query, Index key) { return (query + key) % 4 == 0; });
  const auto columns = masks::predicate([](Index, Index key) { return key % 4 == 0; });
  const AttentionShards shards{shards_of_kind(200, size, 0), shards_of_kind(300, size, 3)};
  AttentionOptions<float> options;
  options.bias = bias;
  expect_gradients_of_one_process(shape, in, mask, shards, options);
  expect_gradients_of_one_process(shape, in, columns, shards, options);
}

TEST(ShardedBackward, WhatIsWrongOnOneRankIsRefusedOnAll) {
  const Communicator& ranks = *world();
  const Index size = ranks.size();
  const bool last = ranks.rank() + 1 == size;
  const auto shards = TokenShards::even(10 * size, size);
  const Tensor<float, 3> mine({2, 10, 4});
  const Tensor<float, 2> lse({2, last ? 9 : 10});
  Tensor<float, 3> q(mine.extents()), k(mine.extents()), v(mine.extents());
  EXPECT_EQ(refusal([&] {
              sharded_attention_backward(ranks, shards, mine, mine, mine, masks::Full{}, mine, lse,
                                         mine, q, k, v);
            }),
            "sharded_attention_backward over " + std::to_string(size) + " ranks: rank " +
                std::to_string(size - 1) +
                ": attention_backward: log_sum_exp is (1, 2, 9), expected (batch, heads, queries) "
                "= (1, 2, 10)");
  const auto undifferentiable = [](float score, Position) { return score / 2; };
  AttentionOptions<float> options;
  options.score_function = undifferentiable;
  const Tensor<float, 2> fits({2, 10});
  const std::string said = refusal([&] {
    sharded_attention_backward(ranks, shards, mine, mine, mine, masks::Full{}, mine, fits, mine, q,
                               k, v, options);
  });
  EXPECT_NE(said.find("rank 0: attention_backward: score_function has no derivative"),
            std::string::npos)
      << said;
}

TEST(Reshard, MovesEveryTokenToItsNewRank) {
  const Communicator& ranks = *world();
  std::mt19937_64 bits(3);
  const auto whole = random_tensor<double, 4>({2, 3, 1000, 5}, bits);
  for (Index kind = 0; kind < 6; ++kind) {
    const auto from = shards_of_kind(1000, ranks.size(), kind);
    const auto to = shards_of_kind(1000, ranks.size(), kind * 5 + 2);
    const auto expected = shard_of(whole, to, ranks.rank());
    Tensor<double, 4> got(expected.extents());
    const auto mine = shard_of(whole, from, ranks.rank());
    reshard<double>(ranks, from, to, mine, got);
    EXPECT_TRUE(same_bits(got, expected)) << kind;
  }
}

TEST(Reshard, RefusesWhatDoesNotFitOnAllRanks) {
  const Communicator& ranks = *world();
  const auto tensor = [](Index tokens) { return Tensor<float, 4>({1, 1, tokens, 2}); };
  const auto even = [&](Index tokens) { return TokenShards::even(tokens, ranks.size()); };
  const auto said = [&](const TokenShards& from, const TokenShards& to, Index have, Index want) {
    const auto source = tensor(have);
    auto target = tensor(want);
    return refusal([&] { reshard<float>(ranks, from, to, source, target); });
  };
  const Index mine = even(80).count(ranks.rank());
  EXPECT_EQ(said(even(80), even(80), mine, mine), "computed");
  EXPECT_NE(said(TokenShards::even(80, ranks.size() + 1), even(80), mine, mine), "computed");
  EXPECT_NE(said(even(80), even(60), mine, even(60).count(ranks.rank())), "computed");
  const bool wrong = ranks.rank() == 0;  // one rank alone; all of them hear of it
  EXPECT_NE(said(even(80), even(80), mine + (wrong ? 1 : 0), mine).find("rank 0"),
            std::string::npos);
}

}  // namespace
}  // namespace heed::test
