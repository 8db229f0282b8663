// SPDX-License-Identifier: MIT
#include <heed/masks/predicate.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Predicate, ALambdaOfTwoPositionsServesAllHeads) {
  const auto even = predicate([](Index query, Index key) { return (query + key) % 2 == 0; });
  EXPECT_TRUE(even.allows({3, 9, 2, 4}));
  EXPECT_FALSE(heed::depends_on_head(even));
  EXPECT_EQ(even.coverage({}), Coverage::partial);
}

TEST(Predicate, ALambdaOfAPositionMayDependOnTheHead) {
  const auto heads = predicate([](Position at) { return at.head == 1; });
  EXPECT_TRUE(heads.allows({0, 1, 0, 0}));
  EXPECT_FALSE(heads.allows({0, 0, 0, 0}));
  EXPECT_TRUE(heed::depends_on_head(heads));
}

TEST(Predicate, MayComeWithItsCoverage) {
  const auto mask = predicate([](Index, Index key) { return key < 10; },
                              [](Tile tile) {
                                return tile.last_key < 10    ? Coverage::full
                                       : tile.first_key < 10 ? Coverage::partial
                                                             : Coverage::none;
                              });
  EXPECT_EQ(mask.coverage({0, 0, 0, 0, 3, 9}), Coverage::full);
  EXPECT_EQ(mask.coverage({0, 0, 0, 0, 10, 20}), Coverage::none);
}

}  // namespace
}  // namespace heed::masks
