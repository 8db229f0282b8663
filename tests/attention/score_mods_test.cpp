// SPDX-License-Identifier: MIT
#include <heed/attention/detail/call.hpp>

#include <limits>

#include <heed/masks/intervals.hpp>

#include "support/score_mods.hpp"

namespace heed::test {
namespace {

const Shape shape{2, 4, 2, 6, 10, 3, 3};

std::string refusal(const AttentionOptions<float>& options) {
  const Inputs<float> in(shape, 5);
  Tensor<float, 4> out({2, 4, 6, 3});
  std::fill(out.begin(), out.end(), 8.f);
  std::string message;
  try {
    attention(in.queries, in.keys, in.values, masks::Full{}, out, options);
  } catch (const InvalidArgument& error) {
    message = error.what();
  }
  for (const float value : out) EXPECT_EQ(value, 8.f) << "written before the refusal";
  return message;
}

TEST(ScoreChangesCheck, SaysWhatDoesNotFit) {
  const std::vector<float> three(3, 1.f);
  const Tensor<float, 2> even({4, 6}), rows({3, 5}), small({6, 9});
  const Tensor<float, 4> batch({3, 1, 6, 10});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal({.softcap = -1}),
            "attention: softcap is -1; expected 0 (none) or a number above it, twice of which is "
            "finite");
  EXPECT_EQ(refusal({.softcap = nan}),
            "attention: softcap is nan; expected 0 (none) or a number above it, twice of which is "
            "finite");
  EXPECT_EQ(refusal({.alibi_slopes = three}), "attention: 3 alibi_slopes for 4 heads");
  EXPECT_EQ(refusal({.sinks = three}), "attention: 3 sinks for 4 heads");
  EXPECT_EQ(refusal({.relative_bias = even.view()}),
            "attention: relative_bias has 6 distances, expected an odd number: -r to r");
  EXPECT_EQ(refusal({.relative_bias = rows.view()}),
            "attention: relative_bias has 3 rows for 4 heads");
  EXPECT_EQ(refusal({.bias = small}),
            "attention: bias is (1, 1, 6, 9), expected (batch, heads, queries, keys) = "
            "(2, 4, 6, 10) or 1 in their places");
  EXPECT_EQ(refusal({.bias = batch}),
            "attention: bias is (3, 1, 6, 10), expected (batch, heads, queries, keys) = "
            "(2, 4, 6, 10) or 1 in their places");
  EXPECT_EQ(refusal({.dropout = {.probability = 1.5f}}),
            "attention: dropout has probability 1.5, expected 0 to 1");
  EXPECT_NE(refusal({.dropout = {.probability = nan}}), "");
  EXPECT_EQ(refusal({.dropout = {.probability = 0.5f}}),
            "attention: dropout has no seed; expected another one in every step, "
            "{.probability = 0.1f, .seed = step}");
}

TEST(ScoreChangesCheck, OutMustNotOverlapBias) {
  const Inputs<float> in(shape, 5);
  Tensor<float, 4> out({2, 4, 6, 3});
  const TensorView<const float, 1> bias(out.data(), {10});
  EXPECT_THROW(attention(in.queries, in.keys, in.values, masks::Full{}, out,
                         AttentionOptions<float>{.bias = bias}),
               ShapeError);
}

TEST(ScoreMods, DistancesBeyondTheTableTakeItsEnds) {
  const Tensor<float, 2> table({1, 5}, {1, 2, 3, 4, 5});
  detail::ScoreMods<float> score_mods;
  score_mods.relative_bias = table.view();
  EXPECT_EQ(score_mods.at_distance(0, -7), 1.f);
  EXPECT_EQ(score_mods.at_distance(0, 0), 3.f);
  EXPECT_EQ(score_mods.at_distance(0, 1), 4.f);
  EXPECT_EQ(score_mods.at_distance(0, 99), 5.f);
}

}  // namespace
}  // namespace heed::test
