// SPDX-License-Identifier: MIT
// The contract for bfloat16 tensors.
#include <heed/attention/cached.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/plan.hpp>

#include <algorithm>
#include <limits>

#include <heed/masks.hpp>

#include "support/bfloat16_cases.hpp"
#include "support/own_masks.hpp"
#include "support/tile_emulator.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class Bfloat16Call : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// The rows [first, first + count) of a call by themselves.
template <class M>
NarrowResult rows_of(const Shape& shape, const NarrowInputs& in, const M& mask, Index first,
                     Index count) {
  Shape part = shape;
  part.queries = count;
  NarrowResult result(part);
  attention(in.queries.view().slice(2, first, first + count), in.keys, in.values, mask, result.out,
            {.first_query = shape.keys - shape.queries + first, .log_sum_exp = result.lse});
  return result;
}

TEST_P(Bfloat16Call, IsAccurateForAnyShapeAndMask) {
  std::mt19937_64 bits(701);
  for (int i = 0; i < 25; ++i) {
    const auto upto = [&](Index n) {
      return static_cast<Index>(bits() % static_cast<unsigned>(n));
    };
    const Index kv_heads = 1 + upto(2);
    const Shape shape{
        1 + upto(2),  kv_heads * (1 + upto(3)), kv_heads, 1 + upto(140), upto(400), 1 + upto(140),
        1 + upto(140)};
    set_thread_count(1 + upto(3));
    const float range = i % 3 == 0 ? 6.f : 1.f;
    expect_narrow_is_accurate(shape, Full{}, bits() % 1000, {}, range);
    expect_narrow_is_accurate(shape, Causal{}, bits() % 1000, {}, range);
    expect_narrow_is_accurate(shape, Sparse{}, bits() % 1000, {}, range);
    expect_narrow_is_accurate(shape, masks::SlidingWindow{.left = 17, .right = 0}, bits() % 1000);
    expect_narrow_is_accurate(shape, Full{}, bits() % 1000, {.scale = i % 2 ? -0.5f : 0.f});
  }
  expect_narrow_is_accurate({1, 1, 1, 130, 3500, 64, 64}, Causal{}, 702);
}

TEST_P(Bfloat16Call, OfAllSizesUpToATile) {
  for (Index keys = 1; keys <= 14; ++keys) {
    for (Index dim = 1; dim <= 5; ++dim) {
      expect_narrow_is_accurate({1, 1, 1, 20, keys, dim, dim}, Full{}, 703);
      expect_narrow_is_accurate({1, 1, 1, 3, keys, dim, dim}, Causal{}, 704);
    }
  }
}

TEST_P(Bfloat16Call, R1MaskedMeansAbsent) {
  const Shape shape{1, 2, 1, 100, 300, 16, 12};
  const NarrowInputs clean(shape, 705);
  const auto check = [&](const auto& mask) {
    const auto expected = narrow_attention(shape, clean, mask);
    for_each_poison_where_masked(shape, clean, mask, [&](const auto& in, float poison) {
      EXPECT_TRUE(same_rows(narrow_attention(shape, in, mask), expected, 0)) << poison;
    });
  };
  check(Sparse{});
  check(First{201});
  check(masks::SlidingWindow{.left = 20, .right = 0});
}

TEST_P(Bfloat16Call, R1WhatALaterTokenHoldsCannotReachAnEarlierOne) {
  const Shape shape{1, 1, 1, 130, 130, 9, 7};
  const NarrowInputs clean(shape, 706);
  const auto expected = narrow_attention(shape, clean, Causal{});
  for (const Index from : {1, 40, 63, 64, 100, 129}) {
    for (const float poison : {nan, infinity, 1e38f}) {
      NarrowInputs in = clean;
      for (Index token = from; token < shape.keys; ++token) {
        for (Index d = 0; d < 9; ++d) in.keys(0, 0, token, d) = bfloat16(poison);
        for (Index d = 0; d < 7; ++d) in.values(0, 0, token, d) = bfloat16(poison);
      }
      const auto result = narrow_attention(shape, in, Causal{});
      for (Index q = 0; q < from; ++q) {
        for (Index d = 0; d < 7; ++d) {
          ASSERT_EQ(result.out(0, 0, q, d).bits, expected.out(0, 0, q, d).bits)
              << "from " << from << " query " << q << " poison " << poison;
        }
      }
      for (const Index rows : {1, 5}) {  // decoded
        const auto part = rows_of(shape, in, Causal{}, from - 1 < rows ? 0 : from - rows, rows);
        ASSERT_TRUE(same_rows(part, result, from - 1 < rows ? 0 : from - rows)) << from;
      }
    }
  }
}

TEST_P(Bfloat16Call, R3NothingHidesNaN) {
  for (const Index keys : {1, 5, 16, 17, 64, 97, 200}) {
    const Shape shape{1, 1, 1, keys, keys, 8, 5};
    const NarrowInputs clean(shape, 707);
    for (Index at = 0; at < keys; at += 1 + keys / 9) {
      for (const unsigned payload : {0x7fc0u, 0x7fffu, 0xffffu, 0x7f81u}) {
        NarrowInputs in = clean;
        in.keys(0, 0, at, 3).bits = static_cast<std::uint16_t>(payload);
        const auto result = narrow_attention(shape, in, Causal{});
        NarrowInputs of_values = clean;
        of_values.values(0, 0, at, 4).bits = static_cast<std::uint16_t>(payload);
        const auto from_value = narrow_attention(shape, of_values, Causal{});
        for (Index q = 0; q < keys; ++q) {
          for (Index d = 0; d < 5; ++d) {
            EXPECT_EQ(std::isnan(float{result.out(0, 0, q, d)}), q >= at) << keys << " " << at;
            EXPECT_EQ(std::isnan(float{from_value.out(0, 0, q, d)}), q >= at && d == 4);
          }
          EXPECT_EQ(std::isnan(result.lse(0, 0, q)), q >= at);
        }
      }
    }
  }
}

TEST_P(Bfloat16Call, R3AVisibleInfiniteScoreGivesANaNRow) {
  const Shape shape{1, 1, 1, 70, 250, 4, 5};
  NarrowInputs in(shape, 708);
  for (Index key = 0; key < 250; ++key) in.keys(0, 0, key, 0).bits &= 0x7fff;
  for (Index q = 0; q < 70; ++q) in.queries(0, 0, q, 0) = bfloat16(q % 2 ? 1.f : -1.f);
  in.keys(0, 0, 120, 0) = bfloat16(infinity);  // +inf for odd queries, −inf for even ones
  const auto result = narrow_attention(shape, in, Full{});
  for (Index q = 0; q < 70; ++q) {
    for (Index d = 0; d < 5; ++d) {
      EXPECT_EQ(std::isnan(float{result.out(0, 0, q, d)}), q % 2 == 1) << q;
    }
  }
}

TEST_P(Bfloat16Call, R7ARowDoesNotDependOnTheRowsComputedWithIt) {
  const Shape shape{1, 2, 1, 150, 1900, 20, 17};
  for (const float range : {1.f, 6.f}) {  // the second: maxima move
    const NarrowInputs in(shape, 709, range);
    const auto check = [&](const auto& mask) {
      set_thread_count(2);
      const auto whole = narrow_attention(shape, in, mask);
      set_thread_count(1);
      for (const Index chunk : {1, 5, 16, 37, 64}) {
        for (Index first = 0; first < 150; first += chunk) {
          const auto part = rows_of(shape, in, mask, first, std::min(chunk, 150 - first));
          ASSERT_TRUE(same_rows(part, whole, first)) << "chunk " << chunk << " first " << first;
        }
      }
    };
    check(Causal{});
    check(Sparse{});
    check(Full{});
    check(masks::SlidingWindow{.left = 201, .right = 0});
    check(masks::EveryNthKey{7});
  }
}

TEST_P(Bfloat16Call, R7DecodingIsPrefillWithAnyNumberOfColumns) {
  // Vectors, lines of 32 columns and pairs that are not full, of keys and of values.
  const auto check = [](Index columns, Index value_columns) {
    const Shape shape{1, 2, 2, 45, 101, columns, value_columns};
    const NarrowInputs in(shape, 710 + static_cast<std::uint64_t>(columns));
    const auto whole = narrow_attention(shape, in, Full{});
    for (const Index rows : {1, 3, 6, 17}) {
      const auto last = rows_of(shape, in, Full{}, 45 - rows, rows);
      ASSERT_TRUE(same_rows(last, whole, 45 - rows)) << rows << " rows, head_dim " << columns;
    }
  };
  for (Index columns = 1; columns <= 100; ++columns) check(columns, 101 - columns);
  for (const Index columns : {64, 96, 128, 192, 256}) check(columns, columns);
}

TEST_P(Bfloat16Call, R7NeighborsMayBeAnything) {
  const Shape shape{1, 1, 1, 64, 500, 8, 9};
  const NarrowInputs clean(shape, 710, 4.f);
  const auto expected = narrow_attention(shape, clean, Causal{});
  for (const float poison : {nan, infinity, 1e30f}) {
    NarrowInputs in = clean;
    for (Index q = 0; q < 64; ++q) {
      if (q % 5 == 2) continue;
      for (Index d = 0; d < 8; ++d) in.queries(0, 0, q, d) = bfloat16(poison);
    }
    const auto result = narrow_attention(shape, in, Causal{});
    for (Index q = 2; q < 64; q += 5) {
      for (Index d = 0; d < 9; ++d) {
        EXPECT_EQ(result.out(0, 0, q, d).bits, expected.out(0, 0, q, d).bits) << q;
      }
    }
  }
}

TEST_P(Bfloat16Call, R7AppendingKeysNobodySeesChangesNoBit) {
  for (const Index count : {299, 300}) {
    const Shape shape{1, 1, 1, 40, count, 8, 9};
    const NarrowInputs in(shape, 711, 3.f);
    Shape longer = shape;
    longer.keys = 2000;
    NarrowInputs more(longer, 712);
    std::copy(in.queries.begin(), in.queries.end(), more.queries.begin());
    std::copy(in.keys.begin(), in.keys.end(), more.keys.begin());
    std::copy(in.values.begin(), in.values.end(), more.values.begin());
    const auto expected = narrow_attention(shape, in, First{count}, {.first_query = 0});
    const auto result = narrow_attention(longer, more, First{count}, {.first_query = 0});
    EXPECT_TRUE(same_rows(result, expected, 0));
  }
}

TEST_P(Bfloat16Call, R8AnyStridesGiveTheSameBits) {
  const Shape shape{2, 4, 2, 70, 131, 10, 11};
  const NarrowInputs in(shape, 713);
  const auto expected = narrow_attention(shape, in, Causal{});
  // Rows and columns change places in memory.
  const auto turned = [](const Tensor<bfloat16, 4>& from) {
    const auto& e = from.extents();
    Tensor<bfloat16, 4> to({e[0], e[1], e[3], e[2]});
    for (Index b = 0; b < e[0]; ++b) {
      for (Index h = 0; h < e[1]; ++h) {
        for (Index i = 0; i < e[2]; ++i) {
          for (Index d = 0; d < e[3]; ++d) to(b, h, d, i) = from(b, h, i, d);
        }
      }
    }
    return to;
  };
  const auto queries = turned(in.queries), keys = turned(in.keys), values = turned(in.values);
  const auto as_before = [](const Tensor<bfloat16, 4>& t) {
    return t.view().permute({0, 1, 3, 2});
  };
  Tensor<bfloat16, 4> out({2, 4, 11, 70});
  attention(as_before(queries), as_before(keys), as_before(values), Causal{},
            out.view().permute({0, 1, 3, 2}));
  for (Index h = 0; h < 4; ++h) {
    for (Index q = 0; q < 70; ++q) {
      for (Index d = 0; d < 11; ++d) {
        ASSERT_EQ(out(1, h, d, q).bits, expected.out(1, h, q, d).bits);
      }
    }
  }
  // A few queries: decoded.
  const auto few =
      attention(as_before(queries).slice(2, 67, 70), as_before(keys), as_before(values), Causal{});
  for (Index q = 0; q < 3; ++q) {
    EXPECT_EQ(few(1, 3, q, 10).bits, expected.out(1, 3, 67 + q, 10).bits);
  }
}

TEST_P(Bfloat16Call, DenormalNumbersCountAsZeroWherePairsAreMultiplied) {
  const Shape shape{1, 1, 1, 20, 40, 8, 9};
  NarrowInputs in(shape, 714);
  std::fill(in.values.begin(), in.values.end(), bfloat16(0x1p-130f));
  const auto values = narrow_attention(shape, in, Causal{});
  const auto arithmetic = plan(in.queries, in.keys, in.values, Causal{}).arithmetic;
  const bool scalar = arithmetic == AttentionPlan::Arithmetic::scalar;
  for (const bfloat16 x : values.out) EXPECT_EQ(float{x}, scalar ? 0x1p-130f : 0.f);
  // One of the scores is 0.97 if its key counts.
  NarrowInputs large(shape, 715);
  std::fill(large.queries.begin(), large.queries.end(), bfloat16(0x1p119f));
  std::fill(large.keys.begin(), large.keys.end(), bfloat16(0.f));
  large.keys(0, 0, 0, 0) = bfloat16(0x1.fp-127f);
  const auto lse = narrow_attention(shape, large, Full{}, {.scale = 128.f}).lse;
  for (const float x : lse) EXPECT_EQ(x > std::log(40.f) + 0.01f, scalar) << x;
}

TEST_P(Bfloat16Call, WeightsBelowTheNormalNumbersCountForNothing) {
  const Shape shape{1, 1, 1, 20, 40, 1, 3};
  NarrowInputs in(shape, 716);
  std::fill(in.queries.begin(), in.queries.end(), bfloat16(1.f));
  for (Index key = 0; key < 40; ++key) {  // weights from 1 over 2^-126 down to 2^-181
    in.keys(0, 0, key, 0) = bfloat16(key == 0 ? 0.f : -86.f - static_cast<float>(key));
    in.values(0, 0, key, 0) = bfloat16(key == 0 ? 1.f : 1e30f);
    in.values(0, 0, key, 1) = bfloat16(key % 2 == 0 ? 1.f : 1e3f);
    in.values(0, 0, key, 2) = bfloat16(1.f);
  }
  for (const Index rows : {20, 1}) {  // 1: decoded
    Tensor<bfloat16, 4> out({1, 1, rows, 3});
    attention(in.queries.view().slice(2, 0, rows), in.keys, in.values, Full{}, out, {.scale = 1.f});
    for (const bfloat16 x : out) EXPECT_EQ(float{x}, 1.f);
  }
}

TEST_P(Bfloat16Call, AFloatOutHasTheResultsBeforeTheyAreRounded) {
  for (const Index queries : {1, 5, 70}) {
    const Shape shape{2, 4, 2, queries, 70, 32, 24};
    const NarrowInputs in(shape, 6);
    const auto expected = narrow_attention(shape, in, Causal{});
    Tensor<float, 4> out(expected.out.extents()), again = out, of_floats = out;
    attention(in.queries, in.keys, in.values, Causal{}, out);
    Index rounded = 0;
    for (Index i = 0; i < out.size(); ++i) {
      ASSERT_EQ(bfloat16(out.data()[i]).bits, expected.out.data()[i].bits) << queries << " " << i;
      rounded += out.data()[i] != float{expected.out.data()[i]};
    }
    EXPECT_GT(rounded, 0);
    attention(converted<float>(in.queries), converted<float>(in.keys), converted<float>(in.values),
              Causal{}, of_floats, {.products = Products::bfloat16});
    EXPECT_TRUE(same_bits(of_floats, out)) << queries;
    KeyValueCache<bfloat16> cache(CacheShape::contiguous(2, 2, 32, 24, 70));
    cache.append(in.keys, in.values);
    attention(in.queries, cache, Causal{}, again);
    EXPECT_TRUE(same_bits(again, out)) << queries;
  }
}

TEST_P(Bfloat16Call, EmptyExtents) {
  expect_narrow_is_accurate({1, 2, 1, 20, 0, 8, 9}, Full{}, 714);
  expect_narrow_is_accurate({1, 2, 1, 20, 33, 0, 9}, Full{}, 715);
  const Shape shape{1, 2, 1, 20, 33, 8, 0};
  const NarrowInputs in(shape, 716);
  EXPECT_TRUE(std::isfinite(narrow_attention(shape, in, Full{}).lse(0, 1, 19)));
}

TEST_P(Bfloat16Call, ChangesOfScoresAreThoseOfFloat) {
  const Shape shape{1, 2, 2, 40, 200, 16, 12};
  const NarrowInputs in(shape, 717);
  Inputs<float> wide(shape, 0);
  wide.queries = converted<float>(in.queries);
  wide.keys = converted<float>(in.keys);
  wide.values = converted<float>(in.values);
  const std::vector<float> slopes = {0.5f, 0.1f}, sinks = {0.3f, -1.f};
  const auto check = [&](const AttentionOptions<float>& options) {
    const auto narrow = narrow_attention(shape, in, Causal{}, options);
    const auto expected = fused(shape, wide, Causal{}, options);
    for (Index i = 0; i < narrow.out.size(); ++i) {
      const float value = expected.out.data()[i];
      EXPECT_NEAR(float{narrow.out.data()[i]}, value, 0x1p-7f * (std::fabs(value) + 0.5f));
    }
    for (const Index rows : {1, 7}) {  // decoded
      Tensor<bfloat16, 4> few({1, 2, rows, 12});
      attention(in.queries.view().slice(2, 40 - rows, 40), in.keys, in.values, Causal{}, few,
                options);
      for (Index q = 0; q < rows; ++q) {
        EXPECT_EQ(few(0, 1, q, 3).bits, narrow.out(0, 1, 40 - rows + q, 3).bits);
      }
    }
  };
  check({.softcap = 2});
  check({.alibi_slopes = slopes});
  check({.sinks = sinks});
  const auto quadratic = [](float score, const Position&) { return score * score; };
  check({.score_function = quadratic});
  check({.softcap = 3, .alibi_slopes = slopes, .sinks = sinks});
}

TEST(Bfloat16Tiles, OfTheProcessorAndOfItsTwinGiveTheSameBits) {
  const AmxForTests amx;
  if (!amx.runs()) GTEST_SKIP() << "no amx here, nor avx512_bf16 to emulate it";
  const RestoreSettings restore;
  for (const Shape& shape : {Shape{1, 4, 2, 150, 1700, 64, 64}, Shape{2, 2, 1, 70, 211, 80, 33},
                             Shape{1, 8, 2, 3, 500, 128, 128}, Shape{1, 2, 2, 16, 31, 5, 7}}) {
    const NarrowInputs in(shape, 719, 4.f);
    const auto agree = [&](const auto& mask) {
      AmxForTests::use();
      const auto hardware = narrow_attention(shape, in, mask);
      simd::use(simd::Isa::amx_twin);
      EXPECT_TRUE(same_rows(narrow_attention(shape, in, mask), hardware, 0)) << shape.text();
    };
    agree(Full{});
    agree(Causal{});
    agree(Sparse{});
    agree(masks::SlidingWindow{.left = 40, .right = 0});
  }
}

TEST(Bfloat16Refuses, WhatDoesNotFitBeforeWriting) {
  const Shape shape{1, 1, 1, 20, 33, 8, 9};
  NarrowInputs in(shape, 718);
  Tensor<bfloat16, 4> wrong({1, 1, 20, 8});
  EXPECT_THROW(attention(in.queries, in.keys, in.values, Full{}, wrong), ShapeError);
  EXPECT_THROW(attention(in.queries, in.keys, in.keys, Full{}, in.queries), ShapeError);
  Tensor<bfloat16, 4> out({1, 1, 20, 9});
  EXPECT_THROW(attention(in.queries, in.keys, in.values, Full{}, out, {.scale = nan}),
               InvalidArgument);
  const TensorView<bfloat16, 4> folded(out.data(), {1, 1, 20, 9}, {0, 0, 0, 1});
  EXPECT_THROW(attention(in.queries, in.keys, in.values, Full{}, folded), ShapeError);
  const TensorView<float, 3> over(reinterpret_cast<float*>(out.data()), {1, 1, 20});
  EXPECT_THROW(attention(in.queries, in.keys, in.values, Full{}, out, {.log_sum_exp = over}),
               ShapeError);
  for (const bfloat16 value : out) EXPECT_EQ(value.bits, 0);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Bfloat16Call, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
