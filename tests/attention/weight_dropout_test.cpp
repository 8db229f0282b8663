// SPDX-License-Identifier: MIT
#include <heed/attention/options.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

TEST(WeightDropout, DropsTheShareAskedFor) {
  for (const float probability : {0.1f, 0.5f, 0.9f}) {
    const WeightDropout dropout{.probability = probability, .seed = 1, .layer = 2};
    Index dropped = 0, pairs = 0;
    for (Index query = 0; query < 200; ++query) {
      for (Index key = 0; key < 200; ++key) {
        dropped += !keeps(dropout, {0, 0, query, key});
        pairs += !keeps(dropout, {0, 0, query, key}) && !keeps(dropout, {0, 0, query, key + 1});
      }
    }
    const double p = static_cast<double>(probability), count = 40000;
    EXPECT_NEAR(static_cast<double>(dropped), p * count, 5 * std::sqrt(count * p * (1 - p)));
    EXPECT_NEAR(static_cast<double>(pairs), p * p * count, 8 * std::sqrt(count * p * p));
  }
}

TEST(WeightDropout, EveryPartOfAPositionCounts) {
  const WeightDropout dropout{.probability = 0.5f, .seed = 9, .layer = 4};
  const auto differences = [&](const WeightDropout& other, Position shift) {
    int count = 0;
    for (Index key = 0; key < 256; ++key) {
      count += keeps(dropout, {1, 2, 3, key}) !=
               keeps(other, {1 + shift.batch, 2 + shift.head, 3 + shift.query, key + shift.key});
    }
    return count;
  };
  EXPECT_EQ(differences(dropout, {}), 0);
  for (const Position shift : {Position{1, 0, 0, 0}, Position{0, 1, 0, 0}, Position{0, 0, 1, 0},
                               Position{0, 0, 0, 1}, Position{0, 0, -10, 0}}) {
    EXPECT_NEAR(differences(dropout, shift), 128, 50);
  }
  EXPECT_NEAR(differences({.probability = 0.5f, .seed = 10, .layer = 4}, {}), 128, 50);
  EXPECT_NEAR(differences({.probability = 0.5f, .seed = 9, .layer = 5}, {}), 128, 50);
}

TEST(WeightDropout, IsTheSameOnEveryPlatform) {
  const WeightDropout dropout{.probability = 0.5f, .seed = 42, .layer = 1};
  unsigned bits = 0;
  for (Index key = 0; key < 32; ++key) {
    bits |= static_cast<unsigned>(keeps(dropout, {0, 1, 2, key})) << key;
  }
  EXPECT_EQ(bits, 0x4a686894u);
}

}  // namespace
}  // namespace heed
