// SPDX-License-Identifier: MIT
// Attention to the tokens of a cache: the bits of attention to the same tokens in tensors.
#include <heed/attention/cached.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <heed/masks.hpp>
#include <heed/tensor/copy.hpp>

#include "support/bfloat16_cases.hpp"
#include "support/score_mods.hpp"

namespace heed::test {
namespace {

using masks::Causal;

class Cached : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// Appends the keys and values of some inputs, 1, 2, 4, … tokens at a time.
template <class Cache, class In>
void append_in_pieces(Cache& cache, const In& in, Index tokens) {
  for (Index first = 0; first < tokens;) {
    const Index last = std::min(2 * first + 1, tokens);
    cache.append(in.keys.view().slice(2, first, last), in.values.view().slice(2, first, last));
    first = last;
  }
}

template <class Stored>
void expect_same_bits_as_tensors(Index page_size, Index tokens, Index queries, std::uint64_t seed) {
  const Shape shape{2, 4, 2, queries, tokens, 20, 12};
  SCOPED_TRACE("pages of " + std::to_string(page_size) + ", " + shape.text());
  const Inputs<float> in(shape, seed);
  KeyValueCache<float, Stored> cache({2, 2, 20, 12, page_size, 2 * (tokens / page_size + 1)});
  append_in_pieces(cache, in, tokens);
  Inputs<float> expected_in = in;
  if constexpr (!std::is_same_v<Stored, float>) {
    expected_in.keys = rounded_to_bfloat16(in.keys);
    expected_in.values = rounded_to_bfloat16(in.values);
  }
  const Changes<float> score_mods(shape, seed);
  const auto mask = Causal{} & predicate([](Index q, Index k) { return (q + 2 * k) % 5 != 1; });
  for (const unsigned which : {0u, unsigned{Changes<float>::all}}) {
    auto options = score_mods.options(which);
    const auto expected = fused(shape, expected_in, mask, options);
    Result<float> result(shape);
    options.log_sum_exp = result.lse;
    attention(in.queries, cache, mask, result.out, options);
    EXPECT_TRUE(same_bits(result.out, expected.out)) << which;
    EXPECT_TRUE(same_bits(result.lse, expected.lse)) << which;
  }
}

TEST_P(Cached, PagedContiguousAndNarrowGiveTheBitsOfTensors) {
  for (const Index tokens : {230, 90}) {  // the second: short calls
    for (const Index queries : {1, 7, 40, tokens < 100 ? 64 : 100}) {
      for (const Index page : {16, 48, 96, 112, 240}) {
        expect_same_bits_as_tensors<float>(page, tokens, queries, 700);
      }
      expect_same_bits_as_tensors<bfloat16>(48, tokens, queries, 701);
      expect_same_bits_as_tensors<bfloat16>(96, tokens, queries, 702);
    }
  }
}

class CachedBfloat16 : public Cached {};

void expect_pages_give_the_bits_of_tensors(Index page, Index tokens, Index queries) {
  SCOPED_TRACE("pages of " + std::to_string(page) + ", tokens " + std::to_string(tokens));
  const Shape shape{2, 4, 2, queries, tokens, 21, 12};
  const NarrowInputs in(shape, 720);
  KeyValueCache<bfloat16> cache({2, 2, 21, 12, page, 2 * (tokens / page + 1)});
  append_in_pieces(cache, in, tokens);
  const auto check = [&](const auto& mask) {
    const auto expected = narrow_attention(shape, in, mask);
    NarrowResult result(shape);
    attention(in.queries, cache, mask, result.out, {.log_sum_exp = result.lse});
    EXPECT_TRUE(same_rows(result, expected, 0));
  };
  check(Causal{});
  check(masks::last_n(50));
  check(Causal{} & predicate([](Index q, Index k) { return (q + 2 * k) % 5 != 1; }));
  cache.forget(0, tokens - 75);
  cache.forget(1, tokens - 61);
  const auto expected = narrow_attention(shape, in, masks::last_n(20));
  for (const Index rows : {Index{1}, std::min<Index>(queries, 40)}) {
    Shape last = shape;
    last.queries = rows;
    NarrowResult result(last);
    attention(in.queries.view().slice(2, queries - rows, queries), cache, masks::last_n(20),
              result.out, {.log_sum_exp = result.lse});
    EXPECT_TRUE(same_rows(result, expected, queries - rows));
  }
}

TEST_P(CachedBfloat16, PagesGiveTheBitsOfTensors) {
  for (const Index page : {16, 48, 96, 112, 240}) {
    for (const Index queries : {1, 7, 40, 100}) {
      expect_pages_give_the_bits_of_tensors(page, 231, queries);
    }
    for (const Index queries : {1, 7, 40, 64}) {  // short calls
      expect_pages_give_the_bits_of_tensors(page, 90, queries);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, CachedBfloat16, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

TEST_P(Cached, TokenByTokenEqualsTheWholeSequence) {
  const Shape shape{1, 6, 2, 130, 130, 16, 16};
  const Inputs<float> in(shape, 703);
  const auto whole = fused(shape, in, masks::last_n(50));
  KeyValueCache<float> cache(CacheShape::contiguous(1, 2, 16, 16, 130));
  Tensor<float, 4> row({1, 6, 1, 16});
  for (Index token = 0; token < 130; ++token) {
    cache.append(in.keys.view().slice(2, token, token + 1),
                 in.values.view().slice(2, token, token + 1));
    cache.forget(0, token - 49);
    attention(in.queries.view().slice(2, token, token + 1), cache, masks::last_n(50), row);
    for (Index head = 0; head < 6; ++head) {
      ASSERT_EQ(std::memcmp(&row(0, head, 0, 0), &whole.out(0, head, token, 0), 64), 0) << token;
    }
  }
}

TEST_P(Cached, SequencesOfUnequalLengthAreAsAlone) {
  const Shape shape{3, 2, 1, 3, 200, 8, 8};
  const Inputs<float> in(shape, 704);
  const Index lengths[] = {200, 3, 97};
  KeyValueCache<float> cache({3, 1, 8, 8, 48, 12});
  for (Index item = 0; item < 3; ++item) {
    cache.append(item, in.keys.view().select(0, item).slice(1, 0, lengths[item]),
                 in.values.view().select(0, item).slice(1, 0, lengths[item]));
  }
  const auto together = [&] {
    Tensor<float, 4> out({3, 2, 3, 8});
    attention(in.queries, cache, Causal{}, out);
    return out;
  }();
  for (Index item = 0; item < 3; ++item) {
    const auto alone =
        attention(in.queries.view().slice(0, item, item + 1),
                  in.keys.view().slice(0, item, item + 1).slice(2, 0, lengths[item]),
                  in.values.view().slice(0, item, item + 1).slice(2, 0, lengths[item]), Causal{});
    EXPECT_EQ(std::memcmp(alone.data(), &together(item, 0, 0, 0), 2 * 3 * 8 * 4), 0) << item;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Cached, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

TEST(Cached, ForgottenTokensAreAsMasked) {
  const Shape shape{1, 1, 1, 2, 100, 8, 8};
  const Inputs<float> in(shape, 705);
  KeyValueCache<float> cache({1, 1, 8, 8, 16, 7});
  cache.append(in.keys, in.values);
  cache.forget(0, 37);
  EXPECT_EQ(cache.starts()[0], 32);
  EXPECT_EQ(cache.free_pages(), 2);
  Tensor<float, 4> out({1, 1, 2, 8});
  attention(in.queries, cache, Causal{}, out);
  const auto from_32 = predicate([](Index q, Index k) { return k <= q && k >= 32; });
  EXPECT_TRUE(same_bits(out, fused(shape, in, from_32).out));
}

TEST(Cached, FirstTokensMayBeKept) {
  const Shape shape{1, 1, 1, 2, 100, 8, 8};
  const Inputs<float> in(shape, 706);
  KeyValueCache<float> cache({1, 1, 8, 8, 16, 7});
  cache.append(in.keys, in.values);
  const auto expect_keys = [&](Index kept, Index start, Index free) {
    EXPECT_EQ(cache.kept()[0], kept);
    EXPECT_EQ(cache.starts()[0], start);
    EXPECT_EQ(cache.free_pages(), free);
    Tensor<float, 4> out({1, 1, 2, 8});
    attention(in.queries, cache, Causal{}, out);
    const auto seen =
        predicate([=](Index q, Index k) { return k <= q && (k < kept || k >= start); });
    EXPECT_TRUE(same_bits(out, fused(shape, in, seen).out));
  };
  cache.forget(0, 30, 17);  // both of its pages are kept
  expect_keys(0, 0, 0);
  cache.forget(0, 60, 17);
  expect_keys(32, 48, 1);
  cache.forget(0, 70, 4);
  expect_keys(16, 64, 3);
  cache.forget(0, 75, 40);
  expect_keys(16, 64, 3);
  const auto before = cache;
  cache.forget(0, 90);
  expect_keys(0, 80, 5);
  cache = before;
  expect_keys(16, 64, 3);
  cache.forget(0, -5, 100);
  expect_keys(16, 64, 3);
}

TEST(Cached, AStreamWithItsFirstTokensNeedsFewPages) {
  const Shape shape{2, 4, 2, 300, 300, 16, 16};
  const Inputs<float> in(shape, 707);
  const auto mask = Causal{} & (masks::first_n(4) | masks::last_n(50));
  const auto whole = fused(shape, in, mask);
  KeyValueCache<float> cache({2, 2, 16, 16, 16, 12});
  for (Index token = 0; token < 300; ++token) {
    const auto now = [&](const auto& all) { return all.view().slice(2, token, token + 1); };
    const auto row = decode(now(in.queries), now(in.keys), now(in.values), cache, mask);
    for (Index item = 0; item < 2; ++item) {
      ASSERT_EQ(std::memcmp(&row(item, 3, 0, 0), &whole.out(item, 3, token, 0), 64), 0) << token;
      cache.forget(item, token - 48, 4);
    }
    if (token % 40 == 0) cache.reorder(std::array<Index, 2>{0, 1});
  }
}

TEST(Cached, RefusesWhatDoesNotFit) {
  const KeyValueCache<float> cache({2, 2, 8, 8, 16, 4});
  Tensor<float, 4> queries({2, 4, 1, 7}), out({2, 4, 1, 8});
  EXPECT_THROW(attention(queries, cache, Causal{}, out), ShapeError);
  Tensor<float, 4> batch({3, 4, 1, 8}), other({3, 4, 1, 8});
  EXPECT_THROW(attention(batch, cache, Causal{}, other), ShapeError);
}

TEST(Cached, AnEmptyCacheGivesZeros) {
  const KeyValueCache<float> cache({1, 2, 8, 8, 16, 4});
  Tensor<float, 4> queries({1, 4, 1, 8}), out({1, 4, 1, 8});
  std::fill(out.begin(), out.end(), 3.f);
  attention(queries, cache, Causal{}, out);
  for (const float value : out) EXPECT_EQ(value, 0.f);
}

TEST(Decode, TokenByTokenEqualsTheWholeSequence) {
  const Shape shape{2, 4, 2, 130, 130, 16, 12};
  const Inputs<float> in(shape, 706);
  const auto whole = fused(shape, in, Causal{});
  auto cache = KeyValueCache<float>::for_tokens(
      {.batch = 2, .kv_heads = 2, .head_dim = 16, .value_dim = 12}, 130);
  Tensor<float, 4> out({2, 4, 130, 12});
  for (Index first = 0; first < 130;) {  // a prompt of 100 tokens, then one by one
    const Index last = first == 0 ? 100 : first + 1;
    const auto at = [&](const auto& tensor) { return tensor.view().slice(2, first, last); };
    const Tensor<float, 4> rows =
        decode(at(in.queries), at(in.keys), at(in.values), cache, Causal{});
    copy(rows, out.view().slice(2, first, last));
    first = last;
  }
  EXPECT_TRUE(same_bits(out, whole.out));
  EXPECT_EQ(cache.length(1), 130);
}

TEST(Decode, OneSequenceNeedsNoBatchAxis) {
  const Tensor<float, 2> token({1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto cache = KeyValueCache<float>::for_tokens({.head_dim = 8}, 10);
  const Tensor<float, 2> out = decode(token, token, token, cache, Causal{});
  EXPECT_TRUE(same_bits(out, token)) << "one token sees itself";
  Tensor<float, 3> rows({1, 1, 8});
  decode(token.view().with_leading_axis(), token, token, cache, Causal{}, rows, {.scale = 1.f});
  EXPECT_EQ(rows(0, 0, 7), 8.f);
  EXPECT_EQ(cache.length(0), 2);
}

TEST(Decode, Bfloat16) {
  const Shape shape{1, 4, 2, 40, 40, 16, 16};
  const NarrowInputs in(shape, 721);
  const auto expected = narrow_attention(shape, in, Causal{});
  auto cache = KeyValueCache<bfloat16>::for_tokens({.kv_heads = 2, .head_dim = 16}, 40);
  const auto out = decode(in.queries, in.keys, in.values, cache, Causal{});
  EXPECT_EQ(std::memcmp(out.data(), expected.out.data(), sizeof(bfloat16) * 4 * 40 * 16), 0);
}

/// Two sequences that share a page in the midst of which they end, and a step for both.
struct SharedPage {
  SharedPage() : cache({2, 1, 8, 8, 16, 3}), in(Shape{2, 2, 1, 1, 20, 8, 8}, 707) {
    cache.append(0, in.keys.view().select(0, 0), in.values.view().select(0, 0));
    cache.fork(0, 1);
  }
  auto key() const { return in.keys.view().slice(2, 3, 4); }
  auto value() const { return in.values.view().slice(2, 4, 5); }
  auto result(const KeyValueCache<float>& from) const {
    Tensor<float, 4> out({2, 2, 1, 8});
    attention(in.queries, from, Causal{}, out);
    return out;
  }
  KeyValueCache<float> cache;
  Inputs<float> in;
};

TEST(Decode, WhatDoesNotFitLeavesTheCacheAsItWas) {
  SharedPage at;
  auto& cache = at.cache;
  auto& in = at.in;
  const auto before = at.result(cache);
  Tensor<float, 4> out({2, 2, 1, 8}), other({2, 2, 1, 7});
  std::fill(out.begin(), out.end(), 5.f);
  const auto unchanged = [&] {
    EXPECT_EQ(cache.length(0), 20);
    EXPECT_EQ(cache.length(1), 20);
    EXPECT_EQ(cache.free_pages(), 1) << "the page is shared still";
    for (const float value : out) ASSERT_EQ(value, 5.f);
  };
  const auto refused = [&](const auto& call) {
    EXPECT_THROW(call(), InvalidArgument);
    unchanged();
  };
  const auto key = at.key(), value = at.value();
  const masks::Padding three(std::vector<Index>{1, 2, 3});
  refused([&] { decode(other, key, value, cache, Causal{}, out); });
  refused([&] { decode(in.queries, key, value, cache, Causal{}, other); });
  refused([&] { decode(in.queries, key, value, cache, three, out); });
  refused([&] { decode(in.queries, key, value, cache, Causal{}, out, {.scale = NAN}); });
  refused([&] { decode(in.queries, key, value, cache, Causal{}, in.queries); });
  refused([&] { decode(in.queries, other, value, cache, Causal{}, out); });
  refused([&] { decode(in.queries, key, in.values, cache, Causal{}, out); });
  EXPECT_THROW(decode(in.queries, in.keys, in.values, cache, Causal{}, out), CacheFull);
  unchanged();
  EXPECT_TRUE(same_bits(at.result(cache), before));
}

TEST(Decode, AMaskThatThrowsTakesTheTokensBack) {
  const RestoreSettings restore;
  set_thread_count(1);
  SharedPage at;
  const auto before = at.result(at.cache);
  const auto broken = predicate([](Index, Index) -> bool { throw std::runtime_error("broken"); });
  EXPECT_THROW(decode(at.in.queries, at.key(), at.value(), at.cache, broken), std::runtime_error);
  EXPECT_EQ(at.cache.length(0), 20);
  EXPECT_EQ(at.cache.length(1), 20);
  EXPECT_TRUE(same_bits(at.result(at.cache), before));
}

TEST(Decode, AMaskThatThrowsLeavesPagesShared) {
  const RestoreSettings restore;
  set_thread_count(1);
  KeyValueCache<float> cache(
      {.batch = 3, .kv_heads = 2, .head_dim = 8, .page_size = 16, .pages = 4});
  const Tensor<float, 3> tokens({2, 48, 8}, 1.f);
  const auto prompt = tokens.view().slice(1, 0, 10);
  cache.append(0, prompt, prompt);
  cache.fork(0, 1);
  const Tensor<float, 4> next({3, 2, 1, 8}, 2.f);
  const auto broken = predicate([](Index, Index) -> bool { throw std::runtime_error("broken"); });
  EXPECT_THROW(decode(next, next, next, cache, broken), std::runtime_error);
  EXPECT_EQ(cache.free_pages(), 3);
  EXPECT_EQ(cache.room(2), 48);
  cache.append(2, tokens.view(), tokens.view());
  EXPECT_EQ(cache.free_pages(), 0);
}

}  // namespace
}  // namespace heed::test
