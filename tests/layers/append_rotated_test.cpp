// SPDX-License-Identifier: MIT
#include <heed/layers/cached_attention.hpp>

#include <heed/attention/cached.hpp>
#include <heed/masks/causal.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

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
    append_rotated<float>(cache, turn, of.view(), of.view());
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
