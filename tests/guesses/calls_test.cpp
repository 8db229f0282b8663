// SPDX-License-Identifier: MIT
// Calls of attention as a user would guess them, who read the README once: each compiles as it is
// written, and computes what it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <functional>
#include <vector>

#include <heed/attention/reference.hpp>
#include <heed/heed.hpp>

using namespace heed;

namespace {

Tensor<float, 4> numbers(const Extents<4>& extents, float step) {
  Tensor<float, 4> tensor(extents);
  float value = 0;
  for (float& x : tensor) x = value = value > 1 ? value - 2.17f : value + step;
  return tensor;
}

class Calls : public ::testing::Test {
 protected:
  Calls() {
    attention(q, k, v, masks::Full{}, full);
    attention(q, k, v, masks::Causal{}, causal);
  }

  Tensor<float, 4> q = numbers({2, 4, 7, 8}, 0.31f), k = numbers({2, 2, 7, 8}, 0.47f),
                   v = numbers({2, 2, 7, 8}, 0.73f);
  Tensor<float, 4> full{{2, 4, 7, 8}}, causal{{2, 4, 7, 8}}, out{{2, 4, 7, 8}};
};

bool same(const auto& a, const auto& b) {
  return a.extents() == b.extents() && std::equal(a.begin(), a.end(), b.begin());
}

TEST_F(Calls, WithoutAMaskEveryoneSeesEveryone) {
  EXPECT_TRUE(same(attention(q, k, v), full));
  EXPECT_FALSE(same(full, causal));
}

TEST_F(Calls, WithoutAMaskIntoATensorOrAView) {
  attention(q, k, v, out);
  EXPECT_TRUE(same(out, full));
  Tensor<float, 4> other(out.extents());
  attention(q.view(), k, v.view(), other.view());
  EXPECT_TRUE(same(other, full));
}

TEST_F(Calls, OptionsAreAlwaysTheLastArgument) {
  const AttentionOptions<float> soft{.softcap = 2.0f};
  const auto expected = attention(q, k, v, masks::Full{}, soft);
  EXPECT_FALSE(same(expected, full));
  EXPECT_TRUE(same(attention(q, k, v, {.softcap = 2.0f}), expected));
  EXPECT_TRUE(same(attention(q, k, v, soft), expected));
  attention(q, k, v, out, {.softcap = 2.0f});
  EXPECT_TRUE(same(out, expected));
  attention(q, k, v, out, soft);
  EXPECT_TRUE(same(out, expected));
  EXPECT_TRUE(same(attention(q, k, v, masks::Full{}, {.softcap = 2.0f}), expected));
  EXPECT_TRUE(same(attention(q, k, v, {}), full));
}

TEST_F(Calls, ALambdaIsAMask) {
  EXPECT_TRUE(same(attention(q, k, v, [](Index i, Index j) { return j <= i; }), causal));
  attention(
      q, k, v, [](Position at) { return at.key <= at.query; }, out);
  EXPECT_TRUE(same(out, causal));
  attention(
      q, k, v, [](auto i, auto j) { return j <= i; }, out);
  EXPECT_TRUE(same(out, causal));
}

TEST_F(Calls, ALambdaTakesItsPositionsAsItLikes) {
  EXPECT_TRUE(same(attention(q, k, v, [](int i, int j) { return j <= i; }), causal));
  const std::vector<bool> rows = {true, true, true, false, true, true, true};
  const auto without_fourth = [&](std::size_t, std::size_t j) -> bool { return rows[j]; };
  EXPECT_TRUE(same(attention(q, k, v, without_fourth),
                   attention(q, k, v, [](const Position& at) { return at.key != 3; })));
}

TEST_F(Calls, ALambdaAnswersWithAnElementOfAList) {
  std::vector<bool> valid = {true, true, true, false, true, true, true};
  std::bitset<7> bits;
  for (std::size_t j = 0; j < 7; ++j) bits[j] = valid[j];
  const auto expected = attention(q, k, v, [](const Position& at) { return at.key != 3; });
  const auto of_key = [&](Index, Index j) { return valid[static_cast<std::size_t>(j)]; };
  const auto of_position = [&](Position at) { return bits[static_cast<std::size_t>(at.key)]; };
  EXPECT_TRUE(same(attention(q, k, v, of_key), expected));
  EXPECT_TRUE(same(attention(q, k, v, of_position), expected));
  EXPECT_TRUE(same(attention(q, k, v, predicate(of_key) & ~~Mask(of_position)), expected));
}

bool not_later(Index query, Index key) { return key <= query; }

TEST_F(Calls, WhateverIsCalledLikeALambdaIsAMask) {
  EXPECT_TRUE(same(attention(q, k, v, &not_later), causal));
  const std::function<bool(Index, Index)> function = not_later;
  EXPECT_TRUE(same(attention(q, k, v, function), causal));
  const std::function<bool(Position)> none;
  EXPECT_TRUE(!none && function && !(none || !function)) << "whether they hold a function";
}

TEST_F(Calls, ALambdaBesideAMask) {
  const auto past = [](Index i, Index j) { return j <= i; };
  const auto even = [](Position at) { return at.key % 2 == 0; };
  const auto expected = attention(q, k, v, [](Index i, Index j) { return j <= i && j % 2 == 0; });
  EXPECT_TRUE(same(attention(q, k, v, masks::Causal{} & even), expected));
  EXPECT_TRUE(same(attention(q, k, v, even & masks::Causal{}), expected));
  EXPECT_TRUE(same(attention(q, k, v, past & even), expected));
  EXPECT_TRUE(same(attention(q, k, v, masks::Causal{} & ~(past | even)),
                   attention(q, k, v, [](Index, Index) { return false; })));
  EXPECT_TRUE(same(attention(q, k, v, partial(past)), causal));
}

TEST_F(Calls, AMaskIsGivenFurtherConditions) {
  const auto recent = masks::Causal{} & masks::last_n(3);
  const auto first = [](Index, Index key) { return key == 0; };
  Mask mask = masks::Causal{};
  mask &= masks::last_n(3);
  EXPECT_TRUE(same(attention(q, k, v, mask), attention(q, k, v, recent)));
  mask |= first;
  mask &= Mask(masks::Full{});
  EXPECT_TRUE(same(attention(q, k, v, mask), attention(q, k, v, recent | first)));
}

TEST_F(Calls, ALambdaKeepsWhatItCaptured) {
  const std::vector<int> documents = {0, 0, 0, 1, 1, 1, 1};
  const auto same_document = [&](Index i, Index j) {
    return documents[static_cast<std::size_t>(i)] == documents[static_cast<std::size_t>(j)];
  };
  EXPECT_TRUE(same(attention(q, k, v, same_document & masks::Causal{}),
                   attention(q, k, v, masks::Segments({0, 3, 7}) & masks::Causal{})));
}

TEST_F(Calls, MasksForHeadsMayBeLambdas) {
  const Mask all[] = {masks::Causal{}, [](Index i, Index j) { return j <= i; },
                      [](Position at) { return at.key <= at.query; }, masks::Causal{}};
  EXPECT_TRUE(same(attention(q, k, v, masks::PerHead({all[0], all[1], all[2], all[3]})), causal));
  EXPECT_TRUE(same(attention(q, k, v, all[1]), causal));
  const std::vector<masks::Causal> alike(4);
  EXPECT_TRUE(same(attention(q, k, v, masks::PerHead(alike)), causal));
  const masks::PerHead mixed({masks::Causal{}, [](Index, Index) { return true; }, masks::Full{},
                              masks::Causal{} & [](Position at) { return at.head == 3; }});
  EXPECT_EQ(attention(q, k, v, mixed)(1, 0, 2, 3), causal(1, 0, 2, 3));
  EXPECT_EQ(attention(q, k, v, mixed)(1, 1, 2, 3), full(1, 1, 2, 3));
  EXPECT_EQ(attention(q, k, v, mixed)(1, 3, 2, 3), causal(1, 3, 2, 3));
}

TEST_F(Calls, DescribeTakesALambda) {
  const auto past = [](Index i, Index j) { return j <= i; };
  EXPECT_EQ(describe(past, 3, 3, ascii_on, ascii_off).substr(0, 13), "# . .\n# # .\n#");
  EXPECT_EQ(statistics(past, {.queries = 7, .keys = 7}).visible, 28);
}

TEST_F(Calls, FlatMemoryWithExtentsOrStrides) {
  const std::vector<float> flat(q.begin(), q.end());
  const TensorView queries(flat.data(), {2, 4, 7, 8});
  EXPECT_TRUE(same(attention(queries, k, v), full));
  const TensorView token(flat.data(), Extents<2>{4, 8}, Extents<2>{56, 1});  // of every head
  EXPECT_EQ(token(3, 2), q(0, 3, 0, 2));
}

TEST_F(Calls, MatricesAndHeadsWithoutABatch) {
  const auto head_q = q.view().select(0, 1), head_k = k.view().select(0, 1),
             head_v = v.view().select(0, 1);
  const Tensor<float, 3> heads = attention(head_q, head_k, head_v);
  EXPECT_EQ(heads(3, 6, 7), full(1, 3, 6, 7));
  const Tensor<float, 2> one =
      attention(head_q.select(0, 3), head_k.select(0, 1), head_v.select(0, 1), masks::Causal{});
  EXPECT_EQ(one(5, 1), causal(1, 3, 5, 1));
}

TEST_F(Calls, DoubleAndBfloat16AreCalledAlike) {
  const Tensor<double, 2> x = {{1, 0}, {0, 1}, {1, 1}};
  EXPECT_NEAR(attention(x, x, x)(0, 0), 2 * 0.4011, 1e-4);
  Tensor<bfloat16, 2> narrow({3, 2}), result({3, 2});
  for (Index i = 0; i < 6; ++i) narrow.data()[i] = bfloat16(static_cast<float>(x.data()[i]));
  attention(narrow, narrow, narrow, result);
  EXPECT_NEAR(result(0, 0), 2 * 0.4011, 1e-2);
  EXPECT_EQ(attention(narrow, narrow, narrow, {.softcap = 3})(2, 0),
            attention(narrow, narrow, narrow, masks::Full{}, {.softcap = 3})(2, 0));
}

TEST_F(Calls, BackwardWithoutAMask) {
  Tensor<float, 3> lse({2, 4, 7});
  attention(q, k, v, out, {.log_sum_exp = lse});
  Tensor<float, 4> dq(q.extents()), dk(k.extents()), dv(v.extents());
  Tensor<float, 4> expected_q(q.extents()), expected_k(k.extents()), expected_v(v.extents());
  attention_backward(q, k, v, masks::Full{}, out, lse, q, expected_q, expected_k, expected_v);
  attention_backward(q, k, v, out, lse, q, dq, dk, dv);
  EXPECT_TRUE(same(dq, expected_q) && same(dk, expected_k) && same(dv, expected_v));
  attention_backward(q, k, v, out, lse, q, dq, dk, dv, {.scale = 1.0f});
  EXPECT_FALSE(same(dq, expected_q));
}

TEST_F(Calls, BackwardThroughALambda) {
  Tensor<float, 3> lse({2, 4, 7});
  const auto past = [](Index i, Index j) { return j <= i; };
  attention(q, k, v, past, out, {.log_sum_exp = lse});
  Tensor<float, 4> dq(q.extents()), dk(k.extents()), dv(v.extents()), expected(q.extents());
  attention_backward(q, k, v, masks::Causal{}, out, lse, q, expected, dk, dv);
  attention_backward(q, k, v, past, out, lse, q, dq, dk, dv);
  EXPECT_TRUE(same(dq, expected));
}

TEST_F(Calls, ACacheAnswersWithANewTensor) {
  KeyValueCache<float> cache(CacheShape::contiguous(2, 2, 8, 8, 7));
  cache.append(k, v);
  EXPECT_TRUE(same(attention(q, cache), full));
  EXPECT_TRUE(same(attention(q, cache, masks::Causal{}), causal));
  EXPECT_TRUE(same(attention(q, cache, [](Index i, Index j) { return j <= i; }), causal));
  attention(q, cache, out);
  EXPECT_TRUE(same(out, full));
  attention(q, cache, masks::Causal{}, out, {});
  EXPECT_TRUE(same(out, causal));
  EXPECT_TRUE(same(attention(q, cache, {.softcap = 2}), attention(q, k, v, {.softcap = 2})));
}

TEST_F(Calls, ACacheOfOneSequenceNeedsNoBatch) {
  KeyValueCache<float> heads(CacheShape::contiguous(1, 2, 8, 8, 7)), batch = heads;
  const auto keys = k.view().select(0, 1), values = v.view().select(0, 1);
  heads.append(keys, values);
  batch.append(keys.with_leading_axis(), values.with_leading_axis());
  EXPECT_TRUE(
      same(attention(q.view().select(0, 1), heads), attention(q.view().select(0, 1), batch)));
  EXPECT_THROW(KeyValueCache<float>(CacheShape::contiguous(2, 2, 8, 8, 7)).append(keys, values),
               ShapeError);
}

TEST_F(Calls, ParentsOfACacheAreAnyList) {
  KeyValueCache<float> cache(CacheShape::contiguous(2, 2, 8, 8, 7));
  cache.append(k, v);
  cache.reorder({1, 0});
  cache.reorder(std::vector<int>{1, 0});
  EXPECT_TRUE(same(attention(q, cache), full));
  EXPECT_THROW(cache.reorder({1}), ShapeError);
  EXPECT_THROW(cache.reorder({1, 2}), ShapeError);
}

TEST_F(Calls, DecodingUnderALambda) {
  KeyValueCache<float> cache(CacheShape::contiguous(2, 2, 8, 8, 7));
  const auto past = [](Index i, Index j) { return j <= i; };
  for (Index token = 0; token < 7; ++token) {
    const auto at = [&](const auto& tensor) { return tensor.view().slice(2, token, token + 1); };
    const auto step = decode(at(q), at(k), at(v), cache, past);
    EXPECT_EQ(step(1, 3, 0, 5), causal(1, 3, token, 5)) << token;
  }
}

TEST_F(Calls, DecodingWithoutAMaskSeesEveryToken) {
  KeyValueCache<float> cache(CacheShape::contiguous(2, 2, 8, 8, 7)), whole = cache, other = cache;
  for (Index token = 0; token < 7; ++token) {  // one by one, the tokens so far are all there are
    const auto at = [&](const auto& tensor) { return tensor.view().slice(2, token, token + 1); };
    EXPECT_EQ(decode(at(q), at(k), at(v), cache)(1, 3, 0, 5), causal(1, 3, token, 5)) << token;
  }
  EXPECT_TRUE(same(decode(q, k, v, whole), full));
  decode(q, k, v, other, out, {.softcap = 2});
  EXPECT_TRUE(same(out, attention(q, k, v, {.softcap = 2})));
}

TEST_F(Calls, TheDefinitionTakesALambdaToo) {
  reference_attention(
      q, k, v, [](Index i, Index j) { return j <= i; }, out);
  for (Index i = 0; i < out.size(); ++i) EXPECT_NEAR(out.data()[i], causal.data()[i], 1e-5);
}

TEST_F(Calls, PackedSequencesAnswerWithANewTensor) {
  const auto heads = q.view().select(0, 0), keys = k.view().select(0, 0),
             values = v.view().select(0, 0);
  const std::vector<Index> offsets = {0, 3, 7};
  const auto past = [](Index i, Index j) { return j <= i; };
  EXPECT_TRUE(same(packed_attention(heads, keys, values, offsets),
                   attention(heads, keys, values, masks::Segments(offsets))));
  const auto packed = packed_attention(heads, keys, values, offsets, past);
  EXPECT_TRUE(same(packed, packed_attention(heads, keys, values, offsets, masks::Causal{})));
  Tensor<float, 3> result(packed.extents());
  packed_attention(heads, keys, values, offsets, result);
  EXPECT_TRUE(same(result, packed_attention(heads, keys, values, offsets)));
}

TEST_F(Calls, ListsAreOfAnyInteger) {
  const std::vector<int> lengths = {5, 7}, offsets = {0, 3, 7};
  const std::array<std::size_t, 3> more = {0, 3, 7};
  EXPECT_TRUE(same(attention(q, k, v, masks::Padding(lengths)),
                   attention(q, k, v, masks::Padding({5, 7}))));
  EXPECT_TRUE(same(attention(q, k, v, masks::Segments(offsets)),
                   attention(q, k, v, masks::Segments(more))));
  EXPECT_TRUE(same(attention(q, k, v, masks::Segments{0, 3, 7}),
                   attention(q, k, v, masks::Segments({0, 3, 7}))));
  EXPECT_TRUE(
      same(attention(q, k, v, masks::Padding{5, 7}), attention(q, k, v, masks::Padding({5, 7}))));
  EXPECT_TRUE(same(attention(q, k, v, {.key_counts = lengths}),
                   attention(q, k, v, {.key_counts = {5, 7}})));
  const auto heads = q.view().select(0, 0), keys = k.view().select(0, 0);
  const auto expected = packed_attention(heads, keys, keys, {0, 3, 7});
  EXPECT_TRUE(same(packed_attention(heads, keys, keys, offsets), expected));
  EXPECT_TRUE(same(packed_attention(heads, keys, keys, {offsets, more}), expected));
  const std::vector<unsigned long> huge = {0, ~0ul};
  EXPECT_THROW(attention(q, k, v, masks::Padding(huge)), ShapeError);
}

TEST_F(Calls, PackedQueriesWithOffsetsOfTheirOwn) {
  const auto queries = q.view().select(0, 0).slice(1, 0, 3), keys = k.view().select(0, 0);
  const std::vector<Index> of_queries = {0, 1, 3}, of_keys = {0, 3, 7};
  EXPECT_TRUE(same(packed_attention(queries, keys, keys, {{0, 1, 3}, {0, 3, 7}}),
                   packed_attention(queries, keys, keys, {of_queries, of_keys})));
}

TEST_F(Calls, WeightsForALambdaAndForNoMask) {
  const auto past = [](Index i, Index j) { return j <= i; };
  const auto weights = attention_weights(q, k, past);
  EXPECT_EQ(weights(0, 0, 2, 3), 0.0f);
  EXPECT_TRUE(same(weights, attention_weights(q, k, masks::Causal{})));
  EXPECT_TRUE(same(attention_weights(q, k), attention_weights(q, k, masks::Full{})));
  const auto mean = mean_over_heads(weights);
  EXPECT_TRUE(same(mean_over_heads(Tensor<float, 3>(weights[0])), mean[0]));
  EXPECT_EQ(summarize_weights(q, k, past).favorite(0, 0, 0), 0);
  EXPECT_TRUE(
      same(summarize_weights(q, k).key_sums, summarize_weights(q, k, masks::Full{}).key_sums));
  EXPECT_EQ(plan(q, k, past).partial, 8);
  EXPECT_EQ(heatmap_of(attention_weights(q, k, past, {.batch = 1, .head = 2})).values(0, 6), 0);
}

TEST_F(Calls, APlanWithoutAMaskIsThatOfEveryKey) {
  const auto tiles = [](const AttentionPlan& plan) { return plan.full * 100 + plan.partial; };
  EXPECT_EQ(tiles(plan(q, k)), tiles(plan(q, k, masks::Full{})));
  EXPECT_EQ(tiles(plan(q, k, v)), tiles(plan(q, k, v, masks::Full{})));
  EXPECT_EQ(plan(q, k, {.softcap = 2}).full, 8);
  KeyValueCache<float> cache(CacheShape::contiguous(2, 2, 8, 8, 7));
  cache.append(k, v);
  EXPECT_EQ(tiles(plan(q, cache)), tiles(plan(q, cache, masks::Full{})));
}

TEST_F(Calls, BlocksByContentUnderALambda) {
  const auto past = [](Index i, Index j) { return j <= i; };
  EXPECT_TRUE(same(attention(q, k, v, block_top_k(q, k, past, 2, 4)), causal));
}

TEST(CallsOfLayers, TakeALambda) {
  Random random(1);
  const MultiHeadAttention<float> layer({.model_dim = 8, .heads = 2}, random);
  const SelfAttentionBlock<float> block({.model_dim = 8, .heads = 2}, random);
  const auto past = [](Index i, Index j) { return j <= i; };
  Tensor<float, 3> x({1, 5, 8});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % 7);
  EXPECT_TRUE(same(layer.forward(x, past), layer.forward(x, masks::Causal{})));
  EXPECT_TRUE(same(layer.forward(x, x, x, past), layer.forward(x, x, x, masks::Causal{})));
  EXPECT_TRUE(same(layer.weights(x, x, past), layer.weights(x, x, masks::Causal{})));
  EXPECT_TRUE(same(block.forward(x, past), block.forward(x, masks::Causal{})));
  EXPECT_TRUE(same(block.forward(x), block.forward(x, masks::Full{})));
  SelfAttentionBlock<float>::Saved of_block;
  EXPECT_TRUE(same(block.forward(x, of_block), block.forward(x)));
  MultiHeadAttention<float>::Saved saved;
  EXPECT_TRUE(same(layer.forward(x, past, saved), layer.forward(x, past)));
  EXPECT_TRUE(same(layer.forward(x, saved), layer.forward(x)));
}

TEST(CallsOfLayers, RotateQueriesWithoutABatchOrHeads) {
  const Rotary rotary({}, 4);
  Tensor<float, 4> batch({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor<float, 4> before = batch;
  Tensor<float, 3> heads(before[0]);
  Tensor<float, 2> tokens(heads[0]);
  rotary.apply(batch, 5);
  rotary.apply(heads, 5);
  rotary.apply(tokens.view(), 5);
  EXPECT_NE(batch, before);
  EXPECT_EQ(heads, Tensor(batch[0]));
  EXPECT_EQ(tokens, Tensor(heads[0]));
  rotary.undo(tokens, 5);
  EXPECT_NEAR(tokens(1, 3), 8, 1e-5);
}

TEST(CallsOfLayers, KeysAndValuesOfOneMemory) {
  Random random(1);
  const MultiHeadAttention<float> layer({.model_dim = 8, .heads = 2}, random);
  Tensor<float, 3> x({2, 5, 8}), memory({2, 7, 8});
  for (float& value : x) value = random.normal<float>();
  for (float& value : memory) value = random.normal<float>();
  const masks::Padding padding({4, 7});
  const auto expected = layer.forward(x, memory, memory, padding);
  EXPECT_TRUE(same(layer.forward(x, memory, padding), expected));
  EXPECT_TRUE(same(layer.forward(x, memory), layer.forward(x, memory, memory)));
  MultiHeadAttention<float>::Saved saved;
  EXPECT_TRUE(same(layer.forward(x, memory, padding, saved), expected));
  EXPECT_FALSE(saved.value) << "kept once";
  const auto later = [](Index, Index key) { return key > 2; };
  EXPECT_TRUE(same(layer.forward(x, memory, later), layer.forward(x, memory, memory, later)));
}

TEST(CallsOfLayers, AFeedForwardPartIsFourTimesAsWideInside) {
  Random random(1);
  const FeedForward<float> part({.model_dim = 8}, random);
  EXPECT_EQ(part.up.weight.extents(), (Extents<2>{32, 8}));
  EXPECT_EQ(part.down.weight.extents(), (Extents<2>{8, 32}));
}

TEST(CallsOfLayers, AreMadeOfTwoSizes) {
  const auto tokens = [] {
    Random random(2);
    Tensor<float, 3> x({1, 5, 8});
    for (float& value : x) value = static_cast<float>(random.normal());
    return x;
  }();
  Random random(1), other(1);
  EXPECT_TRUE(same(MultiHeadAttention<float>(8, 2, random).forward(tokens),
                   MultiHeadAttention<float>({.model_dim = 8, .heads = 2}, other).forward(tokens)));
  EXPECT_TRUE(same(FeedForward<float>(8, 16, random).forward(tokens),
                   FeedForward<float>({.model_dim = 8, .hidden_dim = 16}, other).forward(tokens)));
  EXPECT_TRUE(same(SelfAttentionBlock<float>(8, 2, random).forward(tokens),
                   SelfAttentionBlock<float>({.model_dim = 8, .heads = 2}, other).forward(tokens)));
  const CrossAttentionBlock<float> block(8, 2, random),
      same_block({.model_dim = 8, .heads = 2}, other);
  EXPECT_TRUE(same(block.forward(tokens, tokens, masks::Full{}, masks::Full{}),
                   same_block.forward(tokens, tokens, masks::Full{}, masks::Full{})));
}

TEST(CallsOfModels, AreTrainedWithALearningRateAlone) {
  Random random(1), other(1);
  const Embedding<float> table(11, 8, random);
  EXPECT_TRUE(same(table.weight, Embedding<float>({.vocab_size = 11, .dim = 8}, other).weight));
  Linear<float> layer(3, 2, random), same_layer = layer;
  Adam adam(layer, 0.5), given(layer, {.learning_rate = 0.5});
  EXPECT_EQ(AdamW(layer, 0.25).options().learning_rate, 0.25);
  EXPECT_EQ(Sgd(layer, 0.5f).options().learning_rate, 0.5);
  EXPECT_EQ(Sgd(layer, 1).options().learning_rate, 1);
  EXPECT_EQ(Adam(layer, {}).options().learning_rate, AdamOptions{}.learning_rate);
  const auto compute = [](Index, Linear<float>& gradients) {
    gradients.weight.fill(1);
    return BatchLoss{1, 1};
  };
  EXPECT_EQ(train(layer, adam, {.steps = 3}, compute), 3);
  train(same_layer, given, {.steps = 3}, compute, [](const StepInfo&) {});
  EXPECT_TRUE(same(layer.weight, same_layer.weight));
}

TEST(CallsOfModels, AreMadeOfSizes) {
  Random random(1);
  const LanguageModel<float> gpt(
      {.vocab_size = 11, .layers = 2, .block = {.model_dim = 8, .heads = 2}}, random);
  auto options = LanguageModelOptions::llama({.model_dim = 8, .heads = 4, .kv_heads = 2});
  options.vocab_size = 11;
  const LanguageModel<float> llama(options, random);
  const Encoder<float> encoder(
      {.vocab_size = 11, .layers = 2, .block = {.model_dim = 8, .heads = 2}}, random);
  const Tokens tokens({1, 4}, {3, 1, 4, 1});
  EXPECT_EQ(gpt.forward(tokens, masks::Causal{}).extent(2), 11);
  EXPECT_EQ(llama.forward(tokens, masks::Causal{}).extent(2), 11);
  const Tensor<float, 3> hidden = encoder.forward(tokens, masks::Full{});
  EXPECT_EQ(LayerNorm<float>(8).forward(hidden).extents(), hidden.extents());
  EXPECT_EQ(RMSNorm<float>(8, 1e-5).forward(hidden).extents(), hidden.extents());
}

TEST(CallsOfModels, WithoutAMaskHaveTheirUsualOne) {
  Random random(1);
  const LanguageModel<float> model(
      {.vocab_size = 11, .layers = 1, .block = {.model_dim = 8, .heads = 2}}, random);
  const Encoder<float> encoder({.vocab_size = 11, .block = {.model_dim = 8, .heads = 2}}, random);
  const Tokens tokens({1, 4}, {3, 1, 4, 1});
  EXPECT_TRUE(same(model.forward(tokens), model.forward(tokens, masks::Causal{})));
  const auto x = encoder.forward(tokens);
  EXPECT_TRUE(same(x, encoder.forward(tokens, masks::Full{})));
  const MultiHeadAttention<float> layer({.model_dim = 8, .heads = 2}, random);
  EXPECT_TRUE(same(layer.forward(x), layer.forward(x, masks::Full{})));
  EXPECT_TRUE(same(layer.forward(x, x, x), layer.forward(x, x, x, masks::Full{})));
  LanguageModel<float>::Saved saved;
  Encoder<float>::Saved of_encoder;
  EXPECT_TRUE(same(model.forward(tokens, saved), model.forward(tokens)));
  EXPECT_TRUE(same(encoder.forward(tokens, of_encoder), x));
  EXPECT_TRUE(same(attention_of(model, tokens), attention_of(model, tokens, masks::Causal{})));
  EXPECT_TRUE(same(attention_of(encoder, tokens), attention_of(encoder, tokens, masks::Full{})));
}

TEST(CallsOfModels, ATranslatorHasItsUsualMasksToo) {
  Random random(1);
  auto options = EncoderDecoderOptions::original({.model_dim = 8, .heads = 2});
  options.source_vocab_size = options.target_vocab_size = 11;
  const EncoderDecoder<float> model(options, random);
  const Tokens source({1, 4}, {3, 1, 4, 1}), target({1, 3}, {5, 9, 2});
  const auto expected =
      model.forward(source, target, {masks::Full{}, masks::Causal{}, masks::Full{}});
  EXPECT_TRUE(same(model.forward(source, target), expected));
  EXPECT_TRUE(same(model.forward(source, target, {.source = masks::Padding({4})}), expected));
  EncoderDecoder<float>::Saved saved;
  EXPECT_TRUE(same(model.forward(source, target, saved), expected));
  EXPECT_EQ(attention_of(model, source, target).target(0, 0, 0, 0, 1), 0);
}

TEST(CallsOfModels, OneStepIsASamplerAndBracesAreAPrompt) {
  Random random(1);
  const LanguageModel<float> model(
      {.vocab_size = 11, .layers = 1, .block = {.model_dim = 8, .heads = 2}}, random);
  const std::vector<Index> prompt = {3, 1, 4};
  Session<float> session(model), other(model);
  const auto greedy = generate(session, prompt, samplers::Greedy{}, {.max_tokens = 4}, random);
  const auto listed =
      generate(other, prompt, Sampler{samplers::Greedy{}}, {.max_tokens = 4}, random);
  EXPECT_EQ(greedy.tokens, listed.tokens);
  Session<float> braces(model), beams(model);
  EXPECT_EQ(generate(braces, {3, 1, 4}, samplers::Greedy{}, {.max_tokens = 4}, random).tokens,
            listed.tokens);
  Session<float> wide(model, {.batch = 4});
  EXPECT_EQ(beam_search(wide, {3, 1}).size(), 1u);
  EXPECT_EQ(beam_search(beams, {3, 1, 4}, {.width = 1, .max_tokens = 2})[0].tokens,
            beam_search(beams, prompt, {.width = 1, .max_tokens = 2})[0].tokens);
  const std::vector<int> ints = {3, 1, 4};
  for (const auto& ours :
       {generate(Session<float>(model), ints, samplers::Greedy{}, {.max_tokens = 4}),
        generate(Session<float>(model), {3, 1, 4}, {}, {.max_tokens = 4}),
        generate(Session<float>(model), {3, 1, 4}, {.max_tokens = 4})}) {
    EXPECT_EQ(ours.tokens, listed.tokens);
  }
  EXPECT_EQ(beam_search(beams, ints, {.width = 1, .max_tokens = 2})[0].tokens,
            beam_search(beams, prompt, {.width = 1, .max_tokens = 2})[0].tokens);
  const Sampler none, copied = none;
  const std::vector<double> logits = {1, 3, 2};
  EXPECT_EQ(copied.distribution(logits), Sampler(none).distribution(logits));
}

TEST_F(Calls, WeightsOfAHeadWithoutAMask) {
  const auto weights = attention_weights(q, k, WeightRows{.batch = 1, .head = 2});
  EXPECT_TRUE(same(weights, attention_weights(q, k, masks::Full{}, WeightRows{1, 2})));
  EXPECT_EQ(attention_weights(q, k, {}).extents(), (Extents<4>{2, 4, 7, 7}));
}

TEST(CallsOfModels, LengthsAreAnyIntegers) {
  const Tensor<float, 3> x({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const auto means = mean_pool(x, std::vector<int>{2, 3});
  EXPECT_EQ(means(0, 0), 1.5f);
  EXPECT_EQ(mean_pool(x, {2, 3})(1, 0), 5);
  EXPECT_EQ(cross_entropy(x.view().select(2, 0), {1, 0}).grad_logits.extent(0), 2);
}

TEST(CallsOfLists, PaddingOfAMatrixOfTokens) {
  const Tokens source{{7, 8, 0}, {9, 0, 0}};
  const Tensor<int, 2> target{{4, 0}, {5, 6}};
  const auto padding = masks::padding_of_tokens(source, 0);
  const auto three = masks::create_masks(source, target, 0);
  for (Index item = 0; item < 2; ++item) {
    for (Index key = 0; key < 3; ++key) {
      EXPECT_EQ(padding.allows({item, 0, 0, key}), source(item, key) != 0);
      EXPECT_EQ(three.memory.allows({item, 0, 0, key}), source(item, key) != 0);
    }
    EXPECT_EQ(three.target.allows({item, 0, 1, 1}), target(item, 1) != 0);
    EXPECT_FALSE(three.target.allows({item, 0, 0, 1}));
  }
  EXPECT_FALSE(masks::padding_of_tokens(source.view().transpose(), 0).allows({2, 0, 0, 0}));
  EXPECT_THROW(masks::create_masks(source, Tokens{{1, 2}}, 0), ShapeError);
}

TEST_F(Calls, OptionsAreOfFloatUnlessTheySayOtherwise) {
  AttentionOptions options;
  options.softcap = 2;
  EXPECT_TRUE(same(attention(q, k, v, options), attention(q, k, v, {.softcap = 2})));
}

TEST(CallsOfLists, AListIsARowOfATensorAndNoMatrix) {
  const Tensor<Index, 2> ids{{0, 0, 1}, {1, 1, 0}};
  EXPECT_FALSE(masks::Groups(ids[0]).allows({0, 0, 0, 2}));
  EXPECT_TRUE(masks::Groups(ids.view().select(1, 0)).allows({0, 0, 1, 1}));
  EXPECT_TRUE(masks::Groups(Tensor<Index, 2>{{0, 1, 0}}).allows({0, 0, 0, 2}));
  EXPECT_THROW(masks::Groups{ids}, ShapeError);
  EXPECT_THROW(masks::MaskedToken{ids}, ShapeError);
  AttentionOptions<float> options;
  EXPECT_THROW(options.key_counts = ids, ShapeError);
  EXPECT_THROW(options.sinks = (Tensor<float, 2>(2, 2)), ShapeError);
}

TEST(CallsOfLists, OffsetsOfPackedQueriesAndKeys) {
  const Tensor<float, 2> x{{1, 2}, {3, 4}, {5, 6}};
  const std::vector<int> queries{0, 1, 3}, keys{0, 2, 3};
  EXPECT_EQ(packed_attention(x, x, x, queries, keys, masks::Causal{}),
            packed_attention(x, x, x, PackedOffsets{queries, keys}, masks::Causal{}));
  Tensor<float, 2> out(3, 2);
  packed_attention(x, x, x, queries, keys, masks::Causal{}, out);
  EXPECT_EQ(out, packed_attention(x, x, x, queries, keys, masks::Causal{}));
  EXPECT_EQ(packed_attention(x, x, x, queries, queries, masks::Causal{}, {.scale = 2.f}),
            packed_attention(x, x, x, queries, masks::Causal{}, {.scale = 2.f}));
}

TEST(CallsOfGradients, GradientsOfOptionsBesideReturnedOnes) {
  const Tensor<float, 2> x{{1, 2}, {3, 4}}, bias{{0, 1}, {1, 0}};
  Tensor<float, 2> out(2, 2), grad_bias(2, 2), expected(2, 2), dq(2, 2), dk(2, 2), dv(2, 2);
  Tensor<float, 1> lse({2});
  attention(x, x, x, out, {.log_sum_exp = lse, .bias = bias});
  attention_backward(x, x, x, out, lse, x, dq, dk, dv, {.bias = bias}, {.grad_bias = expected});
  const auto [grad_q, grad_k, grad_v] =
      attention_backward(x, x, x, out, lse, x, {.bias = bias}, {.grad_bias = grad_bias});
  EXPECT_EQ(grad_q, dq);
  EXPECT_EQ(grad_bias, expected);
  EXPECT_NE(grad_bias(0, 0), 0);
}

LanguageModel<float> small_model() {
  LanguageModelOptions options;
  options.vocab_size = 11;
  options.block = {.model_dim = 8, .heads = 2};
  options.max_length = 16;
  Random random(1);
  return {options, random};
}

TEST(CallsOfModels, GenerateFromARowOfAMatrix) {
  const auto model = small_model();
  const Tokens prompts{{3, 1, 4}, {1, 5, 9}};
  Session<float> session(model), same_session(model);
  EXPECT_EQ(generate(session, prompts[1], {.max_tokens = 4}).tokens,
            generate(same_session, {1, 5, 9}, {.max_tokens = 4}).tokens);
  EXPECT_THROW(generate(session, prompts, {.max_tokens = 4}), ShapeError);
}

TEST(CallsOfModels, TakeALambda) {
  const auto model = small_model();
  const auto past = [](Index i, Index j) { return j <= i; };
  const Tokens tokens({1, 4}, {3, 1, 4, 1});
  EXPECT_TRUE(same(model.forward(tokens, past), model.forward(tokens, masks::Causal{})));
  EXPECT_TRUE(
      same(attention_of(model, tokens, past, 0), attention_of(model, tokens, masks::Causal{}, 0)));
  Session<float> session(model, {.mask = past}), expected(model);
  EXPECT_TRUE(same(session.logits(tokens), expected.logits(tokens)));
}

}  // namespace
