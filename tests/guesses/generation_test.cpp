// SPDX-License-Identifier: MIT
// Calls of caches and sessions as a user would guess them: each compiles as it is written, and does
// what it says.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include <heed/heed.hpp>

using namespace heed;

namespace {

TEST(Generation, ACacheCopiesTemporariesIntoOneSequence) {
  const Tensor<float, 4> keys({1, 2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor<float, 4> values({1, 2, 1, 4}, {8, 7, 6, 5, 4, 3, 2, 1});
  KeyValueCache<float> cache(CacheShape::contiguous(1, 2, 4, 4, 7)), same = cache;
  cache.append(keys, values);
  same.append(0, Tensor<float, 3>(keys[0]), Tensor<float, 3>(values[0]));
  EXPECT_EQ(attention(keys, same), attention(keys, cache));
  same.append(0, keys[0], Tensor<float, 3>(values[0]));
  EXPECT_EQ(same.length(0), 2);
  KeyValueCache<float> one(CacheShape::contiguous(1, 1, 2, 2, 7));
  const Tensor<float, 2> rows{{1, 2}, {3, 4}};
  one.append(0, rows, rows);
  EXPECT_EQ(one.length(0), 2);
  EXPECT_THROW(one.append(0, keys[0], values[0]), ShapeError);
}

TEST(Generation, AListenerNeedsNoSampler) {
  const auto step = [](std::span<const Index> tokens) {
    Tensor<float, 1> logits(10);
    logits[tokens.back() % 9 + 1] = 1;
    return logits;
  };
  std::vector<Index> heard;
  const auto listen = [&](Index token) { heard.push_back(token); };
  EXPECT_EQ(generate(step, {1}, {.max_tokens = 3}, listen).tokens, (std::vector<Index>{2, 3, 4}));
  EXPECT_EQ(heard, (std::vector<Index>{2, 3, 4}));
  const auto stop = [](Index token) { return token < 3; };
  EXPECT_EQ(generate(step, {1}, {.max_tokens = 5}, stop).reason, StopReason::caller);
  EXPECT_EQ(generate(step, {1}, {}, {.max_tokens = 2}).tokens, (std::vector<Index>{2, 3}));
}

}  // namespace
