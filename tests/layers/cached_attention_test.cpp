// SPDX-License-Identifier: MIT
#include <heed/layers/cached_attention.hpp>

#include <heed/attention/cached.hpp>
#include <heed/masks/dense.hpp>
#include <heed/masks/intervals.hpp>

#include "laws/layer_laws.hpp"
#include "support/attention_calls.hpp"

namespace heed::test {
namespace {

template <class T = double>
MultiHeadAttention<T> made() {
  Random random(1);
  return {{.model_dim = 16, .heads = 4, .kv_heads = 2, .positions = PositionKind::rotary}, random};
}

template <class T, class Stored = T>
void expect_bits_of_whole_sequences(const MultiHeadAttention<T>& layer) {
  std::mt19937_64 bits(2);
  const auto a = random_tensor<T, 3>({1, 9, 16}, bits), b = random_tensor<T, 3>({1, 9, 16}, bits);
  const auto whole_a = layer.forward(a, masks::Causal{}),
             whole_b = layer.forward(b, masks::Causal{});
  KeyValueCache<T, Stored> cache(CacheShape::contiguous(2, 2, 4, 4, 9));
  const Index cuts[][2] = {{0, 0}, {2, 5}, {3, 6}, {3, 6}, {9, 6}, {9, 9}};
  for (std::size_t i = 1; i < std::size(cuts); ++i) {
    const auto& from = cuts[i - 1];
    const auto& to = cuts[i];
    const Index counts[] = {to[0] - from[0], to[1] - from[1]};
    const auto x = side_by_side(tokens_of(a, from[0], to[0]), tokens_of(b, from[1], to[1]));
    const auto expected =
        side_by_side(tokens_of(whole_a, from[0], to[0]), tokens_of(whole_b, from[1], to[1]));
    EXPECT_TRUE(same_bits(cached_attention(layer, x, counts, cache, masks::Causal{}), expected))
        << "call " << i;
  }
  EXPECT_EQ(cache.length(0), 9);
  EXPECT_EQ(cache.length(1), 9);
}

TEST(CachedAttention, UnevenTokensGiveTheBitsOfWholeSequences) {
  expect_bits_of_whole_sequences(made());
  auto narrow = made<float>();
  set_products(narrow, Products::bfloat16);
  expect_bits_of_whole_sequences(narrow);
  expect_bits_of_whole_sequences<float, bfloat16>(narrow);
}

TEST(CachedAttention, MasksMayDescribeTheNewTokensAlone) {
  const auto layer = made<float>();
  std::mt19937_64 bits(3);
  for (const auto& [a, b] : {std::pair<Index, Index>{2, 0}, {2, 1}, {0, 1}, {1, 2}}) {
    KeyValueCache<float> cache(CacheShape::contiguous(2, 2, 4, 4, 9));
    cached_attention(layer, random_tensor<float, 3>({1, 8, 16}, bits), std::vector<Index>{4, 4},
                     cache, masks::Causal{});
    const auto x = random_tensor<float, 3>({1, a + b, 16}, bits);
    const Index more = std::max(a, b);
    Tensor<bool, 2> seen({more, 4 + more});
    for (Index i = 0; i < more; ++i) {
      for (Index j = 0; j < 5 + i; ++j) seen(i, j) = true;
    }
    auto other = cache;
    const std::vector<Index> counts = {a, b};
    EXPECT_TRUE(same_bits(cached_attention(layer, x, counts, cache, masks::Dense(seen, 4)),
                          cached_attention(layer, x, counts, other, masks::Causal{})))
        << a << ' ' << b;
  }
}

TEST(CachedAttention, RefusesCountsThatDoNotFit) {
  const auto layer = made();
  KeyValueCache<double> cache(CacheShape::contiguous(2, 2, 4, 4, 9));
  const Tensor<double, 3> x({1, 3, 16}), two({2, 3, 16});
  const auto call = [&](const Tensor<double, 3>& tokens, std::vector<Index> counts) {
    cached_attention(layer, tokens, counts, cache, masks::Causal{});
  };
  EXPECT_THROW(call(x, {3}), ShapeError);
  EXPECT_THROW(call(x, {1, 1}), ShapeError);
  EXPECT_THROW(call(x, {4, -1}), ShapeError);
  EXPECT_THROW(call(two, {3, 3}), ShapeError);
  EXPECT_EQ(cache.length(0), 0);

  Random random(2);
  const SelfAttentionBlock<double> block({.model_dim = 16, .heads = 4, .kv_heads = 2}, random);
  const auto last = [&](const Tensor<double, 3>& tokens, std::vector<Index> counts) {
    last_tokens_forward(block, tokens, counts, cache, masks::Causal{});
  };
  EXPECT_THROW(last(x, {5, 1}), ShapeError);
  EXPECT_THROW(last(x, {4, -1}), ShapeError);
  EXPECT_THROW(last(x, {3}), ShapeError);
  EXPECT_THROW(last(two, {3, 3}), ShapeError);
  EXPECT_EQ(cache.length(0), 0);
}

TEST(AppendRotated, IsTurningBeforeAppending) {
  std::mt19937_64 bits(1);
  const auto keys = random_tensor<float, 4>({2, 2, 40, 8}, bits);
  const auto values = random_tensor<float, 4>({2, 2, 40, 6}, bits);
  const auto queries = random_tensor<float, 4>({2, 4, 3, 8}, bits);
  const Rotary rotary({.base = 500, .dims = 6}, 8);
  auto turned = keys;
  rotary.apply(turned.view());
  KeyValueCache<float> plain(CacheShape::contiguous(2, 2, 8, 6, 40)), cache = plain;
  KeyValueCache<float, bfloat16> narrow(CacheShape::contiguous(2, 2, 8, 6, 40));
  plain.append(turned, values);
  Index first = 0;
  for (const Index last : {1, 2, 9, 40}) {
    const TensorView<const float, 4> some = keys.view().slice(2, first, last);
    const TensorView<const float, 4> of_values = values.view().slice(2, first, last);
    if (last == 9) {  // one by one
      append_rotated(cache, 1, rotary, some.select(0, 1), of_values.select(0, 1));
      append_rotated(cache, 0, rotary, some.select(0, 0), of_values.select(0, 0));
    } else {
      append_rotated(cache, rotary, some, of_values);
    }
    append_rotated(narrow, rotary, some, of_values);
    first = last;
  }
  Tensor<float, 4> expected({2, 4, 3, 6}), out(expected.extents()), rounded(expected.extents());
  attention(queries, plain, masks::Causal{}, expected);
  attention(queries, cache, masks::Causal{}, out);
  attention(queries, narrow, masks::Causal{}, rounded);
  EXPECT_TRUE(same_bits(out, expected));
  for (Index i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(rounded.data()[i], expected.data()[i], 0.02);
  }
}

TEST(AppendRotated, WhatDoesNotFitLeavesTheCacheAsItWas) {
  KeyValueCache<float> cache({2, 1, 4, 4, 16, 2});
  Tensor<float, 4> tokens({2, 1, 5, 4}), many({2, 1, 20, 4}), wrong({2, 2, 5, 4}),
      few({1, 1, 5, 4});
  const Rotary rotary({}, 4), wide({}, 8);
  const auto append = [&](const Rotary& turn, const Tensor<float, 4>& of) {
    append_rotated(cache, turn, of, of.view());
  };
  append(rotary, tokens);
  EXPECT_THROW(append(rotary, many), CacheFull);
  EXPECT_THROW(append(rotary, wrong), ShapeError);
  EXPECT_THROW(append(rotary, few), ShapeError);
  EXPECT_THROW(append(wide, tokens), ShapeError);
  const TensorView<const float, 4> view = tokens;
  EXPECT_THROW(append_rotated<float>(cache, 2, rotary, view.select(0, 0), view.select(0, 0)),
               ShapeError);
  EXPECT_EQ(cache.length(0), 5);
  EXPECT_EQ(cache.length(1), 5);
}

}  // namespace
}  // namespace heed::test
