// SPDX-License-Identifier: MIT
#include <heed/attention/call_masks.hpp>

#include <gtest/gtest.h>

#include <heed/attention/backward.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/packed.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/weights.hpp>
#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

using masks::Dense;

/// Some rows see, some do not; all keys alike.
bool odd_rows(Index, Index, Index row, Index) { return row % 3 != 1; }

/// Decoding, short sequences, blocks of queries.
const Shape shapes[] = {{2, 2, 1, 3, 10, 8, 8}, {2, 4, 4, 20, 30, 8, 8}, {1, 2, 1, 70, 200, 12, 7}};

TEST(CallMasks, RowsOfADenseMaskWithOneKeyAreTheQueriesOfTheCall) {
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.text());
    const Inputs<float> in(shape, 60);
    const Dense rows({1, 1, shape.queries, 1}, odd_rows);
    const Dense scores({1, 1, shape.queries, shape.keys}, odd_rows);
    const auto expected = fused(shape, in, scores);
    EXPECT_EQ(expected.out(0, 0, 1, 0), 0);
    EXPECT_NE(expected.out(0, 0, 0, 0), 0);
    const auto check = [&](const auto& mask) {
      const auto result = fused(shape, in, mask);
      EXPECT_TRUE(same_bits(result.out, expected.out));
      EXPECT_TRUE(same_bits(result.lse, expected.lse));
      EXPECT_TRUE(same_bits(attention_weights(in.queries, in.keys, mask),
                            attention_weights(in.queries, in.keys, scores)));
      EXPECT_EQ(plan(in.queries, in.keys, mask).full, plan(in.queries, in.keys, scores).full);
    };
    check(rows);
    check(Mask(rows));
    check(~~rows & masks::Full{});
    check(masks::PerHead(std::vector<Mask>(static_cast<std::size_t>(shape.heads), rows)));
    expect_matches_reference<float>(shape, rows, 61);
  }
}

TEST(CallMasks, RowsOfADenseMaskFollowWhereTheQueriesStand) {
  const Shape shape{2, 2, 1, 6, 40, 8, 8};
  const Inputs<float> in(shape, 62);
  const std::vector<Index> firsts{3, 30}, counts{11, 40};
  const Dense rows({1, 1, 6, 1}, odd_rows), scores({1, 1, 6, 40}, odd_rows);
  for (const AttentionOptions<float>& options : {AttentionOptions<float>{.first_query = top_left},
                                                 {.first_query = 500},
                                                 {.first_queries = firsts},
                                                 {.key_counts = counts}}) {
    for (const auto& result :
         {fused(shape, in, rows, options), fused(shape, in, scores, options)}) {
      for (Index item = 0; item < 2; ++item) {
        for (Index query = 0; query < 6; ++query) {
          EXPECT_EQ(result.out(item, 1, query, 3) != 0, query % 3 != 1) << item << " " << query;
        }
      }
    }
  }
}

TEST(CallMasks, GradientsSeeTheRowsThatTheOutputSaw) {
  const Shape shape{1, 2, 2, 20, 30, 8, 8};
  const Inputs<float> in(shape, 63);
  const auto gradient = [&](const Dense& mask) {
    const auto forward = fused(shape, in, mask);
    Tensor<float, 4> queries(in.queries.extents()), keys(in.keys.extents()),
        values(in.values.extents());
    attention_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, forward.out,
                       queries, keys, values);
    return values;
  };
  EXPECT_TRUE(same_bits(gradient(Dense({1, 1, 20, 1}, odd_rows)),
                        gradient(Dense({1, 1, 20, 30}, odd_rows))));
}

TEST(CallMasks, RowsOfADenseMaskInEverySequenceOfAPackedCall) {
  const Index queries[] = {0, 4, 8}, keys[] = {0, 9, 14};
  std::mt19937_64 bits(64);
  const auto q = random_tensor<float, 3>({1, 8, 4}, bits, 1.f);
  const auto k = random_tensor<float, 3>({1, 14, 4}, bits, 1.f);
  Tensor<float, 3> out({1, 8, 4});
  packed_attention(q, k, k, PackedOffsets(queries, keys), Dense({1, 1, 4, 1}, odd_rows), out);
  for (Index query = 0; query < 8; ++query) {
    EXPECT_EQ(out(0, query, 0) != 0, query % 4 % 3 != 1) << query;
  }
}

}  // namespace
}  // namespace heed::test
