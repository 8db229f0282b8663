// SPDX-License-Identifier: MIT
// Short sequences: all heads of a batch item in one call, beside the pass over one block of
// queries.
#include <heed/attention/detail/forward_pass.hpp>

#include <heed/attention/cached.hpp>
#include <heed/attention/plan.hpp>
#include <heed/masks.hpp>

#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;

class ShortForward : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override {
    simd::use(GetParam());
    if (!simd::short_forward_kernel<float>()) GTEST_SKIP() << "header-only, without AVX2";
  }
  RestoreSettings restore_;
};

/// One NaN for all: sign and payload of a NaN are whatever the processor makes of two of them.
template <class T, std::size_t Rank>
Tensor<T, Rank> plain_nans(Tensor<T, Rank> tensor) {
  for (T& value : tensor) {
    if (value != value) value = std::numeric_limits<T>::quiet_NaN();
  }
  return tensor;
}

/// The call done by ShortForward and, into `other`, block by block.
template <class T, class M>
void expect_the_bits_of_blocks(const Inputs<T>& in, const M& mask, bool columns_apart = false,
                               AttentionOptions<T> options = {}) {
  const Index batch = in.queries.extent(0), heads = in.queries.extent(1);
  const Index rows = in.queries.extent(2), columns = in.values.extent(3);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  std::array<Tensor<T, 4>, 2> out;
  std::array<Tensor<T, 3>, 2> lse;
  for (std::size_t way = 0; way < 2; ++way) {
    out[way] = Tensor<T, 4>(columns_apart ? Extents<4>{batch, heads, columns, rows}
                                          : Extents<4>{batch, heads, rows, columns});
    std::fill(out[way].begin(), out[way].end(), nan);
    lse[way] = Tensor<T, 3>({batch, heads, rows});
    std::fill(lse[way].begin(), lse[way].end(), nan);
    options.log_sum_exp = lse[way];
    const TensorView<T, 4> target =
        columns_apart ? out[way].view().permute({0, 1, 3, 2}) : out[way].view();
    const auto args = heed::detail::checked_args<T>(in.queries.view(), in.keys.view(),
                                                    in.values.view(), target, options);
    const MaskRef erased(mask);
    if (way == 0) {
      const auto plan = heed::detail::plan_of(args, erased);
      ASSERT_EQ(plan.grouping, AttentionPlan::Grouping::one_kernel_call);
      heed::detail::run_planned(args, erased, plan);
      continue;
    }
    for (Index item = 0; item < batch; ++item) {
      for (Index head = 0; head < heads; ++head) {
        heed::detail::QueryBlockPass<T>(args, erased, nullptr, item, head, 0, rows).run();
      }
    }
  }
  EXPECT_TRUE(same_bits(plain_nans(out[0]), plain_nans(out[1])));
  EXPECT_TRUE(same_bits(plain_nans(lse[0]), plain_nans(lse[1])));
}

template <class T>
void expect_the_bits_under_masks(const Inputs<T>& in, std::mt19937_64& bits) {
  expect_the_bits_of_blocks(in, masks::Full{});
  expect_the_bits_of_blocks(in, Causal{});
  expect_the_bits_of_blocks(in, Causal{}, true);
  expect_the_bits_of_blocks(in, ByHead{});
  expect_the_bits_of_blocks(in, masks::SlidingWindow{.left = 5, .right = 3});
  expect_the_bits_of_blocks(in, masks::SlidingWindow{.left = 20, .right = 0});
  expect_the_bits_of_blocks(in, masks::EveryNthKey{3});
  std::vector<Index> counts;
  for (Index i = 0; i < in.keys.extent(0); ++i) {
    counts.push_back(static_cast<Index>(bits() % static_cast<unsigned>(in.keys.extent(2) + 1)));
  }
  expect_the_bits_of_blocks(in, Causal{}, false, {.key_counts = counts});
}

TEST_P(ShortForward, HaveTheBitsOfBlocks) {
  std::mt19937_64 bits(1201);
  for (int i = 0; i < 40; ++i) {
    const auto upto = [&](Index n) {
      return static_cast<Index>(bits() % static_cast<unsigned>(n));
    };
    const Index kv_heads = 1 + upto(3);
    const Index value_dim = upto(2) == 0 ? 16 * upto(9) : 1 + upto(140);
    const Shape shape{
        1 + upto(3), (1 + upto(6)) * kv_heads, kv_heads, 4 + upto(61), 1 + upto(96), 1 + upto(140),
        value_dim};
    SCOPED_TRACE(shape.text());
    set_thread_count(1 + upto(3));
    const auto seed = bits() % 1000;
    expect_the_bits_under_masks(Inputs<float>(shape, seed), bits);
    expect_the_bits_under_masks(Inputs<double>(shape, seed, 30), bits);
  }
}

/// A call of bfloat16 whose heads lie side by side within a token, as layers hold them.
template <class M>
Tensor<bfloat16, 4> attention_beside(const NarrowInputs& in, const M& mask) {
  const Tensor<bfloat16, 4> queries(in.queries.transpose(1, 2)), keys(in.keys.transpose(1, 2)),
      values(in.values.transpose(1, 2));
  Tensor<bfloat16, 4> out(
      {queries.extent(0), queries.extent(1), queries.extent(2), values.extent(3)});
  std::fill(out.begin(), out.end(), bfloat16(std::numeric_limits<float>::quiet_NaN()));
  attention(queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), mask,
            out.transpose(1, 2));
  return Tensor<bfloat16, 4>(out.transpose(1, 2));
}

/// The call of bfloat16, from tensors and from a cache, to floats and to bfloat16, beside the call
/// of the same numbers as floats.
template <class M>
void expect_the_bits_of_floats(const Shape& shape, const NarrowInputs& in, const M& mask) {
  const Extents<4> extents{shape.batch, shape.heads, shape.queries, shape.value_dim};
  Tensor<float, 4> expected(extents), out(extents);
  Tensor<float, 3> lse({shape.batch, shape.heads, shape.queries}), expected_lse = lse;
  attention(converted<float>(in.queries), converted<float>(in.keys), converted<float>(in.values),
            mask, expected, {.log_sum_exp = expected_lse});
  ASSERT_EQ(plan(in.queries, in.keys, in.values, mask).grouping,
            AttentionPlan::Grouping::one_kernel_call);
  attention(in.queries, in.keys, in.values, mask, out, {.log_sum_exp = lse});
  EXPECT_TRUE(same_bits(out, expected));
  EXPECT_TRUE(same_bits(lse, expected_lse));
  const auto narrow = narrow_attention(shape, in, mask);
  EXPECT_TRUE(same_bits(narrow.lse, expected_lse));
  const auto beside = attention_beside(in, mask);
  for (Index i = 0; i < out.size(); ++i) {
    ASSERT_EQ(narrow.out.data()[i].bits, bfloat16(expected.data()[i]).bits);
    ASSERT_EQ(beside.data()[i].bits, narrow.out.data()[i].bits);
  }
  KeyValueCache<bfloat16> cache(
      {shape.batch, shape.kv_heads, shape.head_dim, shape.value_dim, 32, 3 * shape.batch});
  cache.append(in.keys, in.values);
  Tensor<float, 4> cached(extents);
  attention(in.queries, cache, mask, cached);
  EXPECT_TRUE(same_bits(cached, expected));
}

TEST_P(ShortForward, NumbersInBfloat16HaveTheBitsOfFloats) {
  std::mt19937_64 bits(1206);
  for (int i = 0; i < 25; ++i) {
    const auto upto = [&](Index n) {
      return static_cast<Index>(bits() % static_cast<unsigned>(n));
    };
    const Index kv_heads = 1 + upto(3);
    const Shape shape{
        1 + upto(3),  (1 + upto(6)) * kv_heads, kv_heads, 4 + upto(61), 1 + upto(96), 1 + upto(140),
        1 + upto(140)};
    const auto seed = bits() % 1000;
    SCOPED_TRACE(shape.text() + " seed " + std::to_string(seed));
    set_thread_count(1 + upto(3));
    const NarrowInputs in(shape, seed, 3.f);
    expect_the_bits_of_floats(shape, in, masks::Full{});
    expect_the_bits_of_floats(shape, in, Causal{});
    expect_the_bits_of_floats(shape, in, ByHead{});
    expect_the_bits_of_floats(shape, in, masks::SlidingWindow{.left = 5, .right = 3});
    expect_the_bits_of_floats(shape, in, masks::EveryNthKey{3});
  }
}

TEST_P(ShortForward, SpecialNumbersInBfloat16ReachThoseWhoSeeThem) {
  for (const Index value_dim : {16, 9}) {
    const Shape shape{2, 4, 2, 21, 33, 24, value_dim};
    for (const float value : {NAN, INFINITY, -INFINITY, 3e38f}) {
      NarrowInputs in(shape, 1207), plain = in;
      in.values(0, 1, 30, 4) = bfloat16(value);
      for (const auto& out :
           {narrow_attention(shape, in, Causal{}).out, attention_beside(in, Causal{})}) {
        const auto expected = narrow_attention(shape, plain, Causal{}).out;
        for (Index head = 0; head < 4; ++head) {
          for (Index row = 0; row < 21; ++row) {
            const bool sees = head >= 2 && row >= 18;  // key 30 is the query's at 18 of 21
            for (Index column = 0; column < value_dim; ++column) {
              if (sees && column == 4) {
                EXPECT_EQ(std::isfinite(static_cast<float>(out(0, head, row, 4))), value == 3e38f);
              } else {
                EXPECT_EQ(out(0, head, row, column).bits, expected(0, head, row, column).bits);
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(ShortForward, NaNAndInfinityReachWhoSeesThem) {
  const float special[] = {NAN, INFINITY, -INFINITY, 3e38f};
  for (const Index value_dim : {16, 9}) {
    const Shape shape{2, 4, 2, 21, 33, 24, value_dim};
    for (const float value : special) {
      Inputs<float> in(shape, 1202);
      in.values(0, 1, 30, 4) = value;
      in.keys(1, 0, 25, 3) = value;
      in.queries(1, 3, 20, 0) = value;
      expect_the_bits_of_blocks(in, Causal{});
      expect_the_bits_of_blocks(in, masks::Full{});
      expect_the_bits_of_blocks(in, masks::SlidingWindow{.left = 4, .right = 0});
      const auto out = fused(shape, in, Causal{}).out;
      for (Index row = 0; row < 21; ++row) {
        EXPECT_EQ(std::isfinite(out(0, 2, row, 4)), value == 3e38f || row < 18) << row;
        EXPECT_TRUE(std::isfinite(out(0, 0, row, 4))) << "another key head, row " << row;
      }
    }
  }
}

TEST_P(ShortForward, ScoresOfMinusInfinityCountAsMasked) {
  const Shape shape{1, 1, 1, 5, 8, 4, 16};
  Inputs<float> in(shape, 1203);
  for (Index d = 0; d < 4; ++d) in.queries(0, 0, 2, d) = -1e30f;
  for (float& key : in.keys) key = 1e30f;
  in.values(0, 0, 1, 1) = NAN;
  expect_the_bits_of_blocks(in, masks::Full{});
  const auto result = fused(shape, in, masks::Full{});
  EXPECT_EQ(result.lse(0, 0, 2), -INFINITY);
  for (Index d = 0; d < 16; ++d) EXPECT_EQ(result.out(0, 0, 2, d), 0.0f);
}

TEST_P(ShortForward, LeaveTheRestToOthers) {
  using heed::detail::ShortForward;
  const auto takes = [](const Shape& shape, AttentionOptions<float> options = {}) {
    const Inputs<float> in(shape, 1);
    Tensor<float, 4> out({shape.batch, shape.heads, shape.queries, shape.value_dim});
    return ShortForward<float>::fits(heed::detail::checked_args<float>(
        in.queries.view(), in.keys.view(), in.values.view(), out.view(), options));
  };
  EXPECT_TRUE(takes({1, 1, 1, 64, 96, 8, 8}));
  EXPECT_FALSE(takes({1, 1, 1, 65, 96, 8, 8}));
  EXPECT_FALSE(takes({1, 1, 1, 64, 97, 8, 8}));
  EXPECT_FALSE(takes({1, 1, 1, 1, 96, 8, 8}));
  EXPECT_FALSE(takes({1, 1, 1, 64, 0, 8, 8}));
  EXPECT_FALSE(takes({1, 1, 1, 64, 96, 8, 8}, {.softcap = 3}));
  const std::vector<float> sinks = {1};
  EXPECT_FALSE(takes({1, 1, 1, 64, 96, 8, 8}, {.sinks = sinks}));
}

TEST_P(ShortForward, OfOneQueryOverSharedKeysOfACacheAreFew) {
  const auto takes = [](Index queries, Index tokens, Index heads) {
    const Shape shape{1, heads, 2, queries, tokens, 8, 8};
    const Inputs<float> in(shape, 2);
    KeyValueCache<float> cache({.kv_heads = 2, .head_dim = 8});
    cache.append(in.keys, in.values);
    const auto short_calls = AttentionPlan::Grouping::one_kernel_call;
    EXPECT_EQ(plan(in.queries, in.keys, Causal{}).grouping, short_calls) << "tensors";
    return plan(in.queries, cache, Causal{}).grouping == short_calls;
  };
  EXPECT_TRUE(takes(1, 8, 6));
  EXPECT_FALSE(takes(1, 9, 6));
  EXPECT_TRUE(takes(1, 16, 2)) << "no heads share keys";
  EXPECT_TRUE(takes(2, 16, 6));
}

TEST_P(ShortForward, MatchTheReference) {
  expect_matches_reference<float>({3, 8, 8, 10, 10, 8, 8}, Causal{}, 1204);
  expect_matches_reference<double>({2, 6, 2, 33, 40, 20, 32}, Causal{}, 1205);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ShortForward, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
