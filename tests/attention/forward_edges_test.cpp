// SPDX-License-Identifier: MIT
// Outputs that lie apart, and masked values that are not numbers beyond the first vector of
// columns.
#include <heed/attention/forward.hpp>

#include <cmath>
#include <limits>

#include <heed/attention/reference.hpp>
#include <heed/masks.hpp>

#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

class ForwardEdges : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(ForwardEdges, OutputsThatLieApartGetEveryNumber) {
  for (const Index queries : {1, 7, 20, 100}) {
    const Shape shape{.batch = 1,
                      .heads = 2,
                      .kv_heads = 2,
                      .queries = queries,
                      .keys = 130,
                      .head_dim = 8,
                      .value_dim = 37};
    const Inputs<float> in(shape, 1);
    const auto expected = fused(shape, in, masks::Causal{}).out;
    for (const Index step : {1, 2, 3}) {
      Tensor<float, 4> wide({1, 2, queries, 37 * step});
      std::fill(wide.begin(), wide.end(), 7.f);
      const auto apart = wide.view().slice(3, 0, 37 * step, step);
      attention(in.queries, in.keys, in.values, masks::Causal{}, apart);
      EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(apart), expected)) << queries << " " << step;
      for (Index i = 0; i < wide.size(); ++i) {
        ASSERT_TRUE(i % step == 0 || wide.data()[i] == 7) << "between them";
      }
    }
  }
}

/// In every column, however wide a value, and with float and bfloat16.
TEST_P(ForwardEdges, AMaskedValueThatIsNoNumberReachesNothing) {
  for (const Index queries : {1, 4, 30, 100}) {
    const Shape shape{.batch = 1,
                      .heads = 2,
                      .kv_heads = 1,
                      .queries = queries,
                      .keys = 101,
                      .head_dim = 6,
                      .value_dim = 70};
    const auto mask = predicate([](Index query, Index key) { return (query + key) % 3 != 0; });
    Inputs<float> in(shape, 2);
    const auto check = [&](auto number) {
      using T = decltype(number);
      const auto stored = [](const Tensor<float, 4>& from) {
        Tensor<T, 4> to(from.extents());
        for (Index i = 0; i < to.size(); ++i) to.data()[i] = T(from.data()[i]);
        return to;
      };
      const auto q = stored(in.queries), k = stored(in.keys);
      auto values = stored(in.values);
      Tensor<T, 4> plain({1, 2, queries, 70}), guarded({1, 2, queries, 70});
      attention(q, k, values, mask, plain);
      const Index bad = 52;
      for (Index d = 0; d < 70; ++d) {
        values(0, 0, bad, d) = T(std::numeric_limits<float>::quiet_NaN());
      }
      attention(q, k, values, mask, guarded);
      for (Index head = 0; head < 2; ++head) {
        for (Index query = 0; query < queries; ++query) {
          const bool sees = (101 - queries + query + bad) % 3 != 0;
          for (Index d = 0; d < 70; ++d) {
            const auto got = static_cast<float>(guarded(0, head, query, d));
            const auto expected = static_cast<float>(plain(0, head, query, d));
            ASSERT_TRUE(sees ? got != got : got == expected)
                << queries << " queries, " << query << ", column " << d;
          }
        }
      }
    };
    check(float{});
    check(bfloat16{});
  }
}

TEST_P(ForwardEdges, AHeadDimOfZeroAveragesValuesFromMemoryToo) {
  const Index keys = 40000;  // more than caches hold, so that what comes next is prefetched
  const Tensor<float, 4> q({1, 2, 128, 0}), k({1, 2, keys, 0});
  Tensor<float, 4> v({1, 2, keys, 33});
  v.fill(1);
  const auto out = attention(q, k, v, {.scale = 1.f});
  for (const float x : out) ASSERT_EQ(x, 1);
}

TEST_P(ForwardEdges, ARowOfScoresThatAreAllMinusInfinityIsEmpty) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Index queries : {1, 3, 70}) {
    const Inputs<float> in({1, 2, 2, queries, 130, 8, 8}, 5);
    Tensor<float, 4> values = in.values;
    values(0, 1, 64, 3) = std::numeric_limits<float>::quiet_NaN();
    Tensor<float, 4> bias({1, 2, queries, 130}), out({1, 2, queries, 8}), reference = out;
    for (Index key = 0; key < 130; ++key) bias(0, 1, queries - 1, key) = -infinity;
    Tensor<float, 3> lse({1, 2, queries});
    for (const std::vector<float>& sinks : {std::vector<float>{}, {0, 1}, {0, 1e9f}}) {
      const AttentionOptions<float> options{.log_sum_exp = lse, .bias = bias, .sinks = sinks};
      attention(in.queries, in.keys, values, masks::Full{}, out, options);
      EXPECT_EQ(lse(0, 1, queries - 1), sinks.empty() ? -infinity : sinks[1]);
      reference_attention(in.queries, in.keys, values, masks::Full{}, reference, options);
      for (Index d = 0; d < 8; ++d) {
        EXPECT_EQ(out(0, 1, queries - 1, d), 0) << queries << " queries, column " << d;
        EXPECT_EQ(reference(0, 1, queries - 1, d), 0);
      }
      const bool others = queries > 1;
      EXPECT_EQ(std::isnan(out(0, 1, 0, 3)), others) << "they see the NaN";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ForwardEdges, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
