// SPDX-License-Identifier: MIT
#include <heed/attention/weights.hpp>

#include <cmath>
#include <limits>

#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

TEST(WeightSummary, IsThatOfTheWholeMatrix) {
  const Shape shape{2, 4, 2, 150, 170, 8, 1};
  const Inputs<float> in(shape, 21);
  const auto mask = predicate([](Index q, Index k) { return k <= q && q != 60; });
  const auto weights = attention_weights(in.queries, in.keys, mask);
  const auto summary = summarize_weights(in.queries, in.keys, mask);
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 4; ++h) {
      for (Index k = 0; k < 170; ++k) {
        double sum = 0;
        for (Index q = 0; q < 150; ++q) sum += static_cast<double>(weights(b, h, q, k));
        EXPECT_EQ(summary.key_sums(b, h, k), static_cast<float>(sum));
      }
      for (Index q = 0; q < 150; ++q) {
        float largest = 0;
        Index favorite = -1;
        for (Index k = 0; k < 170; ++k) {
          if (weights(b, h, q, k) > largest) largest = weights(b, h, q, k), favorite = k;
        }
        EXPECT_EQ(summary.largest(b, h, q), largest);
        EXPECT_EQ(summary.favorite(b, h, q), favorite);
        EXPECT_EQ(favorite == -1, q + 20 == 60);
      }
    }
  }
}

TEST(WeightSummary, ShowsRowsOfNaN) {
  Tensor<float, 2> queries({3, 4}), keys({5, 4});
  queries(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const auto summary = summarize_weights(queries, keys, masks::Full{});
  EXPECT_TRUE(std::isnan(summary.largest(0, 0, 1)));
  EXPECT_EQ(summary.favorite(0, 0, 1), 0);
  EXPECT_EQ(summary.largest(0, 0, 0), 0.2f);
  EXPECT_EQ(summary.favorite(0, 0, 2), 0);
}

}  // namespace
}  // namespace heed::test
