// SPDX-License-Identifier: MIT
#include <heed/distributed/attention_by_heads.hpp>

#include "distributed/ranks.hpp"
#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

/// This rank's rows and gradients of a call over all ranks equal those of one process, in every
/// bit.
template <class T, class M>
void expect_one_process(const Communicator& ranks, const Shape& shape, const Inputs<T>& in,
                        const M& mask, const AttentionShards& shards,
                        AttentionOptions<T> options = {}) {
  const auto of_query = [&](const auto& all) {
    return shard_of(all, shards.queries, ranks.rank());
  };
  const auto of_key = [&](const auto& all) { return shard_of(all, shards.keys, ranks.rank()); };
  const Loss<T> loss(shape, 11);
  const auto whole = fused(shape, in, mask, options);
  Gradients<T> gradients(shape);
  attention_backward(in.queries, in.keys, in.values, mask, whole.out, whole.lse, loss.grad_out,
                     gradients.queries, gradients.keys, gradients.values, options);
  const Shape local = shard_of(shape, shards, ranks.rank());
  Result<T> part(local);
  part.out.fill(std::numeric_limits<T>::quiet_NaN());
  options.log_sum_exp = part.lse;
  const auto q = of_query(in.queries), k = of_key(in.keys), v = of_key(in.values);
  attention_by_heads(ranks, shards, q, k, v, mask, part.out, options);
  EXPECT_TRUE(same_bits(part.out, of_query(whole.out)));
  EXPECT_TRUE(same_bits(part.lse, of_query(whole.lse)));
  Gradients<T> parts(local);
  attention_by_heads_backward(ranks, shards, q, k, v, mask, part.out, part.lse,
                              of_query(loss.grad_out), parts.queries, parts.keys, parts.values,
                              options);
  expect_shard_of(gradients, shards, ranks.rank(), parts);
}

TEST(AttentionByHeads, EveryMaskGivesTheBitsOfOneProcess) {
  // The masks have two heads: pairs of ranks, and a third one alone.
  const Communicator ranks = world()->split(world()->rank() / 2);
  const Shape shape{2, 2, 2, 700, 700, 5, 3};
  const Inputs<float> in(shape, 5);
  const auto expect = [&](const auto& mask, const TokenShards& shards) {
    expect_one_process(ranks, shape, in, mask, shards);
  };
  for_each_mask_and_shards(700, expect, ranks.size());
}

TEST(AttentionByHeads, ChangesOfScoresBelongToTheirHeads) {
  const RestoreSettings restore;
  const Shape shape{1, 10, 5, 300, 400, 6, 8};
  const Inputs<float> in(shape, 7);
  const Changes<float> changes(shape, 3, {1, 10, 1, 400});
  for_each_change_and_shards(changes, 300, 400, [&](const auto& options, const auto& shards) {
    expect_one_process(*world(), shape, in, ByHead{}, shards, options);
  });
}

TEST(AttentionByHeads, GradientsOfBiasesSlopesAndSinksReachAllRanks) {
  const Communicator& ranks = *world();
  const Index size = ranks.size(), me = ranks.rank();
  const Shape shape{2, 10, 5, 200, 300, 6, 8};
  const Inputs<double> in(shape, 7);
  const Changes<double> changes(shape, 3, {1, 10, 1, 300});
  const auto options = changes.options(Changes<double>::all);
  const auto forward = fused(shape, in, ByHead{}, options);
  const Loss<double> loss(shape, 11);
  const AttentionShards shards(shards_of_kind(200, size, 2), shards_of_kind(300, size, 1));
  struct OfScores {
    Tensor<double, 4> bias = Tensor<double, 4>(Extents<4>{1, 10, 1, 300});
    Tensor<double, 2> relative = Tensor<double, 2>(Extents<2>{10, 19});
    Tensor<double, 1> slopes = Tensor<double, 1>(Extents<1>{10}), sinks = slopes;
    GradientOptions<double> wanted(const Tensor<double, 3>& grad_lse) {
      return {grad_lse, bias, relative.view(), slopes, sinks};
    }
  };
  OfScores whole, got;
  Gradients<double> all(shape);
  attention_backward(in.queries, in.keys, in.values, ByHead{}, forward.out, forward.lse,
                     loss.grad_out, all.queries, all.keys, all.values, options,
                     whole.wanted(loss.grad_lse));
  const auto of_query = [&](const auto& from) { return shard_of(from, shards.queries, me); };
  const auto of_key = [&](const auto& from) { return shard_of(from, shards.keys, me); };
  auto q = of_query(in.queries), k = of_key(in.keys), v = of_key(in.values);
  auto grad_queries = q, grad_keys = k, grad_values = v;
  const auto grad_lse = of_query(loss.grad_lse);
  const auto call = [&](const auto& some_options, const auto& gradients) {
    attention_by_heads_backward(ranks, shards, q, k, v, ByHead{}, of_query(forward.out),
                                of_query(forward.lse), of_query(loss.grad_out), grad_queries,
                                grad_keys, grad_values, some_options, gradients);
  };
  call(options, got.wanted(grad_lse));
  EXPECT_TRUE(same_bits(grad_queries, of_query(all.queries)));
  EXPECT_TRUE(same_bits(grad_keys, of_key(all.keys)));
  EXPECT_TRUE(same_bits(grad_values, of_key(all.values)));
  EXPECT_TRUE(same_bits(got.bias, whole.bias));
  EXPECT_TRUE(same_bits(got.relative, whole.relative));
  EXPECT_TRUE(same_bits(got.slopes, whole.slopes));
  EXPECT_TRUE(same_bits(got.sinks, whole.sinks));
  AttentionOptions<double> one;
  const Tensor<double, 1> of_keys({Index{300}});
  Tensor<double, 1> grad_of_keys({Index{300}});
  one.bias = of_keys;
  GradientOptions<double> wanted;
  wanted.grad_bias = grad_of_keys;
  const std::string said = refusal([&] { call(one, wanted); });
  if (size > 1) {
    EXPECT_NE(said.find("grad_bias is a sum over heads of several ranks"), std::string::npos);
  } else {
    EXPECT_EQ(said, "computed");
  }
}

TEST(AttentionByHeads, OtherTypesAndPositions) {
  const Communicator& ranks = *world();
  const Index size = ranks.size();
  const Shape shape{2, 8, 4, 40, 1600, 7, 9};
  AttentionOptions<double> options;
  options.key_counts = {1599, 20};
  const AttentionShards shards(shards_of_kind(40, size, 3), shards_of_kind(1600, size, 5));
  expect_one_process(ranks, shape, Inputs<double>(shape, 8), masks::Causal{}, shards, options);
  const Shape none{1, 4, 4, 50, 0, 4, 4};
  expect_one_process(ranks, none, Inputs<float>(none, 9), masks::Full{},
                     {shards_of_kind(50, size, 0), shards_of_kind(0, size, 0)});
  std::mt19937_64 bits(4);
  const auto all = converted<bfloat16>(random_tensor<float, 4>({1, 8, 300, 16}, bits));
  const auto mine = shard_of(all, TokenShards::zigzag(300, size), ranks.rank());
  Tensor<bfloat16, 4> out(mine.extents());
  attention_by_heads(ranks, TokenShards::zigzag(300, size), mine, mine, mine, masks::last_n(50),
                     out);
  EXPECT_TRUE(same_bits(out, shard_of(attention(all, all, all, masks::last_n(50)),
                                      TokenShards::zigzag(300, size), ranks.rank())));
}

TEST(AttentionByHeads, EveryTokenOfAnotherRanksHeadsIsSentOnce) {
  const Communicator& ranks = *world();
  const Index size = ranks.size();
  const auto shards = TokenShards::even(10 * size, size);
  const Tensor<float, 3> queries({8, 10, 6}), keys({4, 10, 6}), values({4, 10, 3});
  Tensor<float, 3> out({8, 10, 3});
  const auto before = ranks.bytes_sent();
  attention_by_heads(ranks, shards, queries, keys, values, masks::Causal{}, out);
  const Index own = 4 * (ranks.rank() + 1) / size - 4 * ranks.rank() / size;  // key heads
  const Index inputs = (4 - own) * 10 * (2 * 6 + 6 + 3), results = own * 2 * 10 * (size - 1) * 3;
  EXPECT_EQ(static_cast<Index>(ranks.bytes_sent() - before), 4 * (inputs + results));
}

TEST(AttentionByHeads, WhatIsWrongOnOneRankIsRefusedOnAll) {
  const Communicator& ranks = *world();
  const Index size = ranks.size();
  const bool last = ranks.rank() + 1 == size;
  const std::string name = "attention_by_heads over " + std::to_string(size) + " ranks: rank ";
  const auto shards = TokenShards::even(10 * size, size);
  const Tensor<float, 3> mine({size, 10, 4}), wide({size, 10, last ? 5 : 4});
  Tensor<float, 3> out(mine.extents());
  const auto call = [&](const auto& q, const AttentionOptions<float>& options) {
    return refusal(
        [&] { attention_by_heads(ranks, shards, q, mine, mine, masks::Full{}, out, options); });
  };
  EXPECT_EQ(call(wide, {}),
            name + std::to_string(size - 1) + ": attention: queries have head_dim 5, keys 4");
  const Tensor<float, 2> bias({10, 10 * size});
  AttentionOptions<float> options;
  options.bias = bias;
  EXPECT_EQ(call(mine, options), name + "0: heads with a bias for every query are not divided");
  EXPECT_EQ(call(mine, {}), "computed");
  if (size == 1) return;
  options = {};
  options.scale = last ? 2.f : 1.f;
  EXPECT_EQ(call(mine, options),
            name + std::to_string(size - 1) + " brings scale 2, rank 0 scale 1");
  const Tensor<float, 3> few({1, 10, 4});
  Tensor<float, 3> few_out(few.extents());
  EXPECT_EQ(
      refusal([&] { attention_by_heads(ranks, shards, few, few, few, masks::Full{}, few_out); }),
      name + "0: 1 key heads for " + std::to_string(size) +
          " ranks: every rank needs one, or tokens are divided instead");
}

}  // namespace
}  // namespace heed::test
