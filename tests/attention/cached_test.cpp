// SPDX-License-Identifier: MIT
// Attention to the tokens of a cache: the bits of attention to the same tokens in tensors.
#include <heed/attention/cached.hpp>

#include <algorithm>

#include <heed/masks.hpp>

#include "support/bfloat16_cases.hpp"
#include "support/score_changes.hpp"

namespace heed::test {
namespace {

using masks::Causal;

template <class T>
Tensor<T, 4> rounded_to_bfloat16(Tensor<T, 4> tensor) {
  for (T& value : tensor) value = static_cast<T>(bfloat16(static_cast<float>(value)));
  return tensor;
}

class Cached : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

template <class Stored>
void expect_same_bits_as_tensors(Index page_tokens, Index queries, std::uint64_t seed) {
  const Shape shape{2, 4, 2, queries, 230, 20, 12};
  SCOPED_TRACE("pages of " + std::to_string(page_tokens) + ", " + shape.text());
  const Inputs<float> in(shape, seed);
  KeyValueCache<float, Stored> cache({2, 2, 20, 12, page_tokens, 2 * (230 / page_tokens + 1)});
  for (Index first = 0; first < 230;) {  // in pieces of 1, 2, 4, … tokens
    const Index last = std::min<Index>(2 * first + 1, 230);
    cache.append(in.keys.view().slice(2, first, last), in.values.view().slice(2, first, last));
    first = last;
  }
  Inputs<float> expected_in = in;
  if constexpr (!std::is_same_v<Stored, float>) {
    expected_in.keys = rounded_to_bfloat16(in.keys);
    expected_in.values = rounded_to_bfloat16(in.values);
  }
  const Changes<float> changes(shape, seed);
  const auto mask = Causal{} & predicate([](Index q, Index k) { return (q + 2 * k) % 5 != 1; });
  for (const unsigned which : {0u, 127u}) {
    auto options = changes.options(which);
    const auto expected = fused(shape, expected_in, mask, options);
    Result<float> result(shape);
    options.log_sum_exp = result.lse;
    attention(in.queries, cache, mask, result.out, options);
    EXPECT_TRUE(same_bits(result.out, expected.out)) << which;
    EXPECT_TRUE(same_bits(result.lse, expected.lse)) << which;
  }
}

TEST_P(Cached, PagedContiguousAndNarrowGiveTheBitsOfTensors) {
  for (const Index queries : {1, 7, 40, 100}) {
    for (const Index page : {16, 48, 96, 112, 240}) {
      expect_same_bits_as_tensors<float>(page, queries, 700);
    }
    expect_same_bits_as_tensors<bfloat16>(48, queries, 701);
    expect_same_bits_as_tensors<bfloat16>(96, queries, 702);
  }
}

class CachedBfloat16 : public Cached {};

TEST_P(CachedBfloat16, PagesGiveTheBitsOfTensors) {
  for (const Index queries : {1, 7, 40, 100}) {
    const Shape shape{2, 4, 2, queries, 231, 21, 12};
    const NarrowInputs in(shape, 720);
    for (const Index page : {16, 48, 96, 112, 240}) {
      KeyValueCache<bfloat16> cache({2, 2, 21, 12, page, 2 * (231 / page + 1)});
      for (Index first = 0; first < 231;) {
        const Index last = std::min<Index>(2 * first + 1, 231);
        cache.append(in.keys.view().slice(2, first, last), in.values.view().slice(2, first, last));
        first = last;
      }
      const auto check = [&](const auto& mask) {
        const auto expected = narrow_attention(shape, in, mask);
        NarrowResult result(shape);
        attention(in.queries, cache, mask, result.out, {.log_sum_exp = result.lse});
        EXPECT_TRUE(same_rows(result, expected, 0)) << "pages of " << page;
      };
      check(Causal{});
      check(masks::last_n(50));
      check(Causal{} & predicate([](Index q, Index k) { return (q + 2 * k) % 5 != 1; }));
      cache.forget(0, 100);
      cache.forget(1, 170);
      const auto expected = narrow_attention(shape, in, masks::last_n(20));
      Tensor<bfloat16, 4> last({2, 4, 1, 12});
      attention(in.queries.view().slice(2, queries - 1, queries), cache, masks::last_n(20), last);
      for (Index d = 0; d < 12; ++d) {
        EXPECT_EQ(last(1, 3, 0, d).bits, expected.out(1, 3, queries - 1, d).bits);
      }
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

}  // namespace
}  // namespace heed::test
