// SPDX-License-Identifier: MIT
#include <heed/attention/detail/call.hpp>

#include <gtest/gtest.h>

#include <heed/attention.hpp>
#include <heed/attention/reference.hpp>
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

TEST(CallMasks, WhereThereAreNoQueriesNoRowsAreMissing) {
  const Dense rows({1, 1, 5, 100}, odd_rows, 0);
  const masks::BlockSparse blocks(1, 20, 5, [](Index, Index) { return true; });
  for (const Shape& shape : {Shape{1, 2, 2, 0, 100, 4, 4}, Shape{0, 2, 2, 5, 100, 4, 4}}) {
    SCOPED_TRACE(shape.text());
    const Inputs<float> in(shape, 64);
    EXPECT_EQ(attention(in.queries, in.keys, in.values, rows).size(), 0);
    EXPECT_EQ(attention(in.queries, in.keys, in.values, blocks).size(), 0);
    EXPECT_THROW(attention(in.queries, in.keys, in.values, Dense({1, 3, 5, 100}, odd_rows)),
                 ShapeError);
  }
  // Of two sequences, the second has keys alone.
  const auto queries = random_matrix<float>(5, 8, 65), keys = random_matrix<float>(105, 8, 66);
  const std::vector<Index> of_queries{0, 5, 5}, of_keys{0, 5, 105};
  const auto run = [&](const Mask& mask) {
    EXPECT_EQ(packed_attention(queries, keys, keys, of_queries, of_keys, mask).extent(0), 5);
  };
  run(Dense({1, 1, 5, 100}, odd_rows, 0));
  run(masks::Padding({5, 100}));  // by item: the keys of both count
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

/// Groups for 9 of 10 tokens.
const auto nine = masks::Causal{} & masks::Groups(std::vector<Index>(9));

template <class Call>
void expect_refused(const char* name, const Call& call) {
  try {
    call();
    ADD_FAILURE() << name << " took it";
  } catch (const ShapeError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 45),
              "Groups: describes 9 tokens, the call has 10; ")
        << name;
  }
}

TEST(CallMasks, EveryCallRefusesAMaskThatDoesNotFit) {
  const Shape shape{1, 2, 1, 10, 10, 8, 8};
  const Inputs<float> in(shape, 65);
  const Tensor<float, 4>&q = in.queries, &k = in.keys, &v = in.values;
  auto r = fused(shape, in, masks::Causal{});
  auto gq = q, gk = k, gv = v;
  const auto rows = q.view().select(0, 0), head = k.view().select(0, 0),
             values = v.view().select(0, 0);
  const Index offsets[] = {0, 10};
  KeyValueCache<float> cache(CacheShape::contiguous(1, 1, 8, 8, 10));
  cache.append(k, v);
  Tensor<bfloat16, 2> narrow({10, 8}), narrow_out({10, 8});
  Tensor<float, 1> lse({10});
  expect_refused("attention", [&] { attention(q, k, v, nine, r.out); });
  expect_refused("weights", [&] { attention_weights(q, k, nine); });
  expect_refused("rows", [&] { attention_weights(q, k, nine, WeightRows{}); });
  expect_refused("plan", [&] { plan(q, k, nine); });
  expect_refused("reference", [&] { reference_attention(q, k, v, nine, r.out); });
  expect_refused("cache", [&] { attention(q, cache, nine, r.out); });
  expect_refused("bfloat16", [&] { attention(narrow, narrow, narrow, nine, narrow_out); });
  expect_refused("backward",
                 [&] { attention_backward(q, k, v, nine, r.out, r.lse, r.out, gq, gk, gv); });
  expect_refused("reference backward",
                 [&] { reference_backward(q, k, v, nine, r.out, r.lse, r.out, gq, gk, gv); });
  expect_refused("bfloat16 backward", [&] {
    attention_backward(narrow, narrow, narrow, nine, narrow, lse, narrow,
                       gq.view().select(0, 0).select(0, 0), gk.view().select(0, 0).select(0, 0),
                       gv.view().select(0, 0).select(0, 0));
  });
  expect_refused("packed", [&] {
    packed_attention(rows, head, values, offsets, nine, gq.view().select(0, 0));
  });
  expect_refused("packed backward", [&] {
    packed_attention_backward(rows, head, values, offsets, nine, r.out.view().select(0, 0),
                              r.lse.view().select(0, 0), r.out.view().select(0, 0),
                              gq.view().select(0, 0), gk.view().select(0, 0),
                              gv.view().select(0, 0));
  });
  expect_refused("describe", [&] { describe(nine, 10, 10); });
  expect_refused("dense", [&] { masks::dense(nine, {1, 1, 10, 10}); });
  EXPECT_NO_THROW(attention(q, k, v, partial(nine), r.out));
  EXPECT_EQ(r.out(0, 1, 9, 0), 0) << "the tenth token sees nothing, on purpose";
}

TEST(CallMasks, AMaskOfTheWholeSequenceServesACacheThatGrows) {
  const Shape shape{1, 2, 1, 20, 20, 8, 8};
  const Inputs<float> in(shape, 66);
  const auto whole = masks::dense(masks::last_n(4), {1, 1, 20, 20}, 0);
  const Mask sequences[] = {masks::Segments({0, 4, 13, 20}), masks::GridNeighborhood{4, 5, 2},
                            masks::BlockSparse(5, 5, 4, [](Index a, Index b) { return a - b < 2; }),
                            whole, partial(masks::GlobalTokens({0, 7, 19}))};
  for (const Mask& sequence : sequences) {
    const auto mask = masks::Causal{} & sequence;
    const auto expected = fused(shape, in, mask);
    for (const Index step : {1, 3}) {
      KeyValueCache<float> cache(CacheShape::contiguous(1, 1, 8, 8, 20));
      Tensor<float, 4> out({1, 2, 20, 8});
      for (Index first = 0; first < 20; first += step) {
        const Index end = std::min<Index>(first + step, 20);
        cache.append(in.keys.view().slice(2, first, end), in.values.view().slice(2, first, end));
        attention(in.queries.view().slice(2, first, end), cache, mask,
                  out.view().slice(2, first, end));
      }
      EXPECT_TRUE(same_bits(out, expected.out)) << step;
    }
  }
}

}  // namespace
}  // namespace heed::test
