// SPDX-License-Identifier: MIT
#include <heed/attention/block_top_k.hpp>

#include <heed/attention/plan.hpp>
#include <heed/masks.hpp>

#include "laws/mask_laws.hpp"
#include "support/backward_cases.hpp"
#include "support/mask_catalogue.hpp"

namespace heed::test {
namespace {

TEST(BlockTopK, EveryQueryPicksTheBlocksWhoseMeanFitsItBest) {
  // Keys of block i point along axis i % 4; queries along axis 2, but one along axis 1.
  Tensor<float, 2> queries({64, 4}), keys({64, 4});
  for (Index token = 0; token < 64; ++token) {
    keys(token, token / 8 % 4) = 1;
    queries(token, token == 61 ? 1 : 2) = 1;
  }
  const auto mask = block_top_k(queries, keys, masks::Causal{}, 8, 3);
  for (Index key = 0; key < 64; ++key) {
    const Index block = key / 8;
    // Two blocks along axis 2 (numbers 2 and 6), and their own.
    EXPECT_EQ(mask.allows({0, 0, 60, key}), block == 2 || block == 6 || (block == 7 && key <= 60));
    EXPECT_EQ(mask.allows({0, 0, 61, key}), block == 1 || block == 5 || (block == 7 && key <= 61));
    // Of equals the first; nothing after the query.
    EXPECT_EQ(mask.allows({0, 0, 20, key}), key <= 20) << key;
    EXPECT_EQ(mask.allows({0, 0, 32, key}), block == 0 || block == 2 || key == 32) << key;
  }
}

/// The blocks that a query chooses, by the words of the definition.
std::vector<bool> chosen_blocks(const Inputs<double>& in, const Mask& mask, Position at,
                                Index key_head, Index row, Index block, Index count) {
  const Index keys = in.keys.extent(2), dim = in.keys.extent(3);
  const auto blocks = static_cast<std::size_t>((keys + block - 1) / block);
  std::vector<std::pair<long double, Index>> ranked;  // lowest first
  for (Index b = 0; std::cmp_less(b, blocks); ++b) {
    long double gate = 0;
    Index seen = 0;
    for (at.key = b * block; at.key < std::min((b + 1) * block, keys); ++at.key) {
      if (!mask.allows(at)) continue;
      ++seen;
      for (Index d = 0; d < dim; ++d) {
        gate += static_cast<long double>(in.queries(at.batch, at.head, row, d)) *
                static_cast<long double>(in.keys(at.batch, key_head, at.key, d));
      }
    }
    if (seen == 0) continue;
    const bool own = at.query >= 0 && at.query < keys && at.query / block == b;
    ranked.emplace_back(own ? -1e300L : -gate / static_cast<long double>(seen), b);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<bool> chosen(blocks);
  for (std::size_t i = 0; i < ranked.size() && std::cmp_less(i, count); ++i) {
    chosen[static_cast<std::size_t>(ranked[i].second)] = true;
  }
  return chosen;
}

TEST(BlockTopK, MeansWhatItSaysUnderEveryMask) {
  constexpr Index length = 47, block = 5, count = 3;
  const Shape shape{2, 2, 1, length, length, 6, 6};
  const Inputs<double> in(shape, 11);
  for_each_mask(length, [&](const auto& named) {
    const Mask mask = named.mask;
    const auto some = block_top_k(in.queries, in.keys, mask, block, count);
    Index wrong = 0;
    for (Index item = 0; item < 2; ++item) {
      for (Index head = 0; head < 2; ++head) {
        for (Index query = 0; query < length; ++query) {
          Position at{item, head, query, 0};
          const auto blocks = chosen_blocks(in, mask, at, 0, query, block, count);
          for (at.key = 0; at.key < length; ++at.key) {
            wrong += some.allows(at) !=
                     (mask.allows(at) && blocks[static_cast<std::size_t>(at.key / block)]);
          }
        }
      }
    }
    EXPECT_EQ(wrong, 0) << named.name;
  });
}

TEST(BlockTopK, KeepsTheLawsOfMasks) {
  const Shape shape{2, 2, 1, 20, 23, 4, 4};
  const Inputs<float> in(shape, 12);
  for (const Index first_query : {3, 0, -7}) {
    const AttentionOptions<float> options{.first_query = first_query};
    const auto mask = block_top_k(in.queries, in.keys, masks::last_n(18), 4, 2, options);
    for (const Index which : {0, 1}) {
      const laws::Plane plane{20, 23, first_query, which, which};
      laws::check_mask_laws(mask, "chosen", plane);
      laws::check_mask_laws(mask.second, "blocks", plane, true);
    }
    // Other positions, keys, items and heads than it was made for: nothing is shown.
    for (const Index which : {1, 2, -1}) {
      laws::check_mask_laws(mask.second, "outside", {40, 37, first_query - 9, which, which}, true);
    }
  }
}

TEST(BlockTopK, AttendsAsItsDenseForm) {
  const Shape shape{2, 4, 2, 100, 150, 8, 8};
  const Inputs<float> in(shape, 31);
  const auto mask = block_top_k(in.queries, in.keys, masks::Causal{}, 20, 2);
  expect_matches_reference<float>(shape, mask, 31);
  EXPECT_GT(plan(in.queries, in.keys, mask).partial, 0);
  // All blocks: plain causal attention.
  const auto all = fused(shape, in, block_top_k(in.queries, in.keys, masks::Causal{}, 20, 8));
  EXPECT_TRUE(same_bits(all.out, fused(shape, in, masks::Causal{}).out));
}

TEST(BlockTopK, BlocksOfWhichNothingIsSeenAreNotChosen) {
  // The mask hides keys 4 … 7, a whole block, and can tell so only key by key. The block before it
  // has a gate below 0, which is above nothing all the same.
  Tensor<float, 4> queries({1, 1, 12, 1}), keys({1, 1, 12, 1}), values({1, 1, 12, 1});
  queries.fill(1);
  keys.fill(-1);
  for (Index key = 0; key < 4; ++key) values(0, 0, key, 0) = 8;
  const auto gap = [](Index query, Index key) { return key <= query && (key < 4 || key > 7); };
  const auto out = attention(queries, keys, values, block_top_k(queries, keys, gap, 4, 2));
  EXPECT_FLOAT_EQ(out(0, 0, 11, 0), 4) << "four keys of its own block, four of the first";
}

/// Queries [first, past) over the keys up to them, as in decoding.
template <class T>
Inputs<T> part(const Inputs<T>& in, Index first, Index past) {
  Inputs<T> some = in;
  some.queries = Tensor<T, 4>::copy_of(in.queries.view().slice(2, first, past));
  some.keys = Tensor<T, 4>::copy_of(in.keys.view().slice(2, 0, past));
  some.values = Tensor<T, 4>::copy_of(in.values.view().slice(2, 0, past));
  return some;
}

/// Whatever the pieces a sequence comes in, every row has the bits it has in one pass.
template <class T, class MaskUpTo>
void expect_steps_equal_one_pass(const MaskUpTo& mask_up_to) {
  constexpr Index length = 157;
  Shape shape{2, 4, 2, length, length, 12, 7};
  const Inputs<T> in(shape, 13);
  const auto whole = fused(shape, in, block_top_k(in.queries, in.keys, mask_up_to(length), 9, 3));
  for (const Index step : {1, 7, 64, 100}) {
    for (Index first = 0; first < length; first += step) {
      const Index past = std::min(first + step, length);
      const Inputs<T> some = part(in, first, past);
      shape.queries = past - first;
      shape.keys = past;
      const auto out =
          fused(shape, some, block_top_k(some.queries, some.keys, mask_up_to(past), 9, 3)).out;
      const auto expected = Tensor<T, 4>::copy_of(whole.out.view().slice(2, first, past));
      ASSERT_TRUE(same_bits(out, expected)) << "queries from " << first << " by " << step;
    }
  }
}

TEST(BlockTopK, TokenByTokenEqualsOnePass) {
  using namespace masks;
  expect_steps_equal_one_pass<float>([](Index) { return Causal{}; });
  expect_steps_equal_one_pass<double>([](Index) { return Causal{}; });
  expect_steps_equal_one_pass<float>([](Index) { return last_n(70); });
  expect_steps_equal_one_pass<float>([](Index) { return Causal{} & (Strided{3} | last_n(5)); });
  expect_steps_equal_one_pass<float>([](Index length) {
    return Causal{} & Padding({std::min<Index>(11, length), 0}, {length, length});
  });
}

TEST(BlockTopK, StandsWhereTheOptionsSay) {
  // Two items of unequal history in one call, and each alone.
  const Shape shape{2, 2, 1, 5, 60, 8, 8};
  const Inputs<float> in(shape, 14);
  const std::vector<Index> counts = {60, 41};
  const AttentionOptions<float> options{.key_counts = counts};
  const auto both =
      fused(shape, in, block_top_k(in.queries, in.keys, masks::Causal{}, 8, 2, options), options);
  for (Index item = 0; item < 2; ++item) {
    const Index keys = counts[static_cast<std::size_t>(item)];
    const auto of_item = [&](const Tensor<float, 4>& tensor, Index tokens) {
      return Tensor<float, 4>::copy_of(tensor.view().slice(0, item, item + 1).slice(2, 0, tokens));
    };
    Inputs<float> one = in;
    one.queries = of_item(in.queries, 5);
    one.keys = of_item(in.keys, keys);
    one.values = of_item(in.values, keys);
    const auto alone = fused(Shape{1, 2, 1, 5, keys, 8, 8}, one,
                             block_top_k(one.queries, one.keys, masks::Causal{}, 8, 2));
    EXPECT_TRUE(same_bits(alone.out, of_item(both.out, 5))) << item;
  }
}

TEST(BlockTopK, ChoosesNaNFirstSoThatNothingHidesIt) {
  const Shape shape{1, 1, 1, 40, 40, 4, 4};
  Inputs<float> in(shape, 15);
  in.keys(0, 0, 13, 2) = std::numeric_limits<float>::quiet_NaN();
  const auto mask = block_top_k(in.queries, in.keys, masks::Causal{}, 5, 2);
  for (Index query = 15; query < 40; ++query) EXPECT_TRUE(mask.allows({0, 0, query, 13})) << query;
  // Where every gate is one, the first blocks.
  in.queries(0, 0, 30, 0) = std::numeric_limits<float>::quiet_NaN();
  const auto other = block_top_k(in.queries, in.keys, masks::Causal{}, 5, 2);
  for (Index key = 0; key < 40; ++key)
    EXPECT_EQ(other.allows({0, 0, 30, key}), key < 5 || key == 30);
}

TEST(BlockTopK, SkipsTheTilesThatNoQueryOfThemChose) {
  // 8 topics of 192 tokens, each told twice: a token's query fits the keys of its topic.
  constexpr Index topics = 8, told = 192, length = 2 * topics * told;
  std::mt19937_64 bits(16);
  auto keys = random_tensor<float, 2>({length, 16}, bits), queries = keys;
  for (Index token = 0; token < length; ++token) {
    keys(token, token / told % topics) += 5;
    queries(token, token / told % topics) += 5;
  }
  const auto mask = block_top_k(queries, keys, masks::Causal{}, told, 2);
  for (Index query = length / 2; query < length; query += 31) {
    for (Index key = 0; key < length; key += 17) {
      const Index back = query / told - key / told;
      EXPECT_EQ(mask.allows({0, 0, query, key}), key <= query && (back == 0 || back == topics));
    }
  }
  // The second telling: of 32 tiles across, the two of a topic's first telling are full, and of the
  // two of its second one those on the diagonal partial, before it full, after it skipped.
  const auto later = Tensor<float, 2>::copy_of(queries.view().slice(0, length / 2, length));
  const auto again = block_top_k(later, keys, masks::Causal{}, told, 2);
  const auto causal = plan(later, keys, masks::Causal{}), some = plan(later, keys, again);
  EXPECT_EQ(some.tiles(), causal.tiles());
  EXPECT_EQ(some.full, topics * (3 * 2 + 1));
  EXPECT_EQ(some.partial, topics * 4);
  EXPECT_EQ(causal.full, 10 * some.full);
}

TEST(BlockTopK, ChoicesHaveNoGradientAndWhatTheyLetThroughHas) {
  const Shape shape{2, 2, 1, 70, 70, 6, 5};
  const Inputs<float> in(shape, 17);
  const Loss<float> loss(shape, 17);
  const auto mask = block_top_k(in.queries, in.keys, masks::Causal{}, 7, 2);
  const auto found = fused_gradients(shape, in, loss, mask);
  const auto written = masks::dense(mask, {2, 2, 70, 70});
  EXPECT_TRUE(same_bits(found, fused_gradients(shape, in, loss, written)));
  expect_gradients_match<float>(shape, mask, 17);
  // A block that nobody but itself chose: its keys moved a gate, and no later query's loss.
  Tensor<float, 2> queries({12, 2}), keys({12, 2}),
      values({12, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6});
  for (Index token = 0; token < 12; ++token) {
    queries(token, 0) = 1;
    keys(token, 0) = token / 4 == 0 ? 1.F : 0.5F;
    keys(token, 1) = 0.1F * static_cast<float>(token);
  }
  const auto chosen = block_top_k(queries, keys, masks::Causal{}, 4, 2);
  Tensor<float, 2> out({12, 1}), grad_out({12, 1}), gq({12, 2}), gk({12, 2}), gv({12, 1});
  Tensor<float, 1> lse({12});
  attention(queries, keys, values, chosen, out, {.log_sum_exp = lse});
  for (Index token = 8; token < 12; ++token) grad_out(token, 0) = 1;
  attention_backward(queries, keys, values, chosen, out, lse, grad_out, gq, gk, gv);
  for (Index token = 4; token < 8; ++token) {
    EXPECT_EQ(gk(token, 0), 0) << token;
    EXPECT_EQ(gv(token, 0), 0) << token;
  }
  EXPECT_NE(gk(0, 0), 0);
  EXPECT_NE(gk(9, 0), 0);
}

TEST(BlockTopK, ThreadsChangeNoChoice) {
  const RestoreSettings restore;
  const Shape shape{3, 4, 2, 90, 90, 8, 8};
  const Inputs<float> in(shape, 18);
  set_thread_count(1);
  const auto one = fused(shape, in, block_top_k(in.queries, in.keys, masks::Causal{}, 8, 3)).out;
  for (const Index threads : {2, 5}) {
    set_thread_count(threads);
    EXPECT_TRUE(same_bits(
        fused(shape, in, block_top_k(in.queries, in.keys, masks::Causal{}, 8, 3)).out, one));
  }
}

TEST(BlockTopK, BlocksLargerThanTheSequenceAreOneBlock) {
  const Shape shape{1, 1, 1, 30, 30, 4, 4};
  const Inputs<float> in(shape, 78);
  const auto causal = fused(shape, in, masks::Causal{}).out;
  for (const Index block : {Index{30}, Index{1000}, std::numeric_limits<Index>::max()}) {
    const auto mask = block_top_k(in.queries, in.keys, masks::Causal{}, block, 1);
    EXPECT_TRUE(same_bits(fused(shape, in, mask).out, causal)) << block;
  }
}

TEST(BlockTopK, QueriesBesideTheKeysHaveNoBlockOfTheirOwn) {
  // Everything may be seen; queries stand before the keys, in them and after them.
  const Shape shape{1, 1, 1, 30, 12, 4, 4};
  const Inputs<float> in(shape, 79);
  const auto mask = block_top_k(in.queries, in.keys, masks::Full{}, 4, 1, {.first_query = -9});
  for (Index query = -9; query < 21; ++query) {
    Index seen = 0;
    for (Index key = 0; key < 12; ++key) seen += mask.allows({0, 0, query, key});
    EXPECT_EQ(seen, 4) << query;
    if (query >= 0 && query < 12) {
      EXPECT_TRUE(mask.allows({0, 0, query, query}));
    }
  }
  // No keys, no queries.
  const Tensor<float, 2> none({0, 4}), some({3, 4});
  EXPECT_FALSE(block_top_k(some, none, masks::Full{}, 4, 1).allows({0, 0, -1, 0}));
  EXPECT_FALSE(block_top_k(none, some, masks::Full{}, 4, 1).allows({0, 0, 0, 0}));
}

TEST(BlockTopK, SaysWhatDoesNotFit) {
  const masks::Causal causal;
  Tensor<float, 2> queries({6, 4}), other({6, 3});
  EXPECT_THROW(block_top_k(queries, other, causal, 2, 1), ShapeError);
  EXPECT_THROW(block_top_k(queries, queries, causal, 0, 1), ShapeError);
  EXPECT_THROW(block_top_k(queries, queries, causal, 2, 0), ShapeError);
  EXPECT_THROW(block_top_k(queries, queries, causal & masks::Padding({7}), 2, 1), ShapeError);
  const auto mask = block_top_k(queries, queries, causal, 2, 1);
  Tensor<float, 3> heads({2, 6, 4}), heads_out({2, 6, 4});
  EXPECT_THROW(attention(heads, heads, heads, mask, heads_out), ShapeError);
  Tensor<float, 2> longer({7, 4}), out({7, 4});
  EXPECT_THROW(attention(longer, longer, longer, mask, out), ShapeError);
}

}  // namespace
}  // namespace heed::test
