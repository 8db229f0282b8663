// SPDX-License-Identifier: MIT
#include <heed/masks/mask.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include <heed/masks/combine.hpp>
#include <heed/masks/intervals.hpp>

namespace heed::masks {
namespace {

TEST(Predicate, ALambdaOfTwoPositionsServesAllHeads) {
  const auto even = predicate([](Index query, Index key) { return (query + key) % 2 == 0; });
  EXPECT_TRUE(even.allows({3, 9, 2, 4}));
  EXPECT_FALSE(heed::depends_on_head(even));
  EXPECT_EQ(even.coverage({}), Coverage::partial);
}

bool near(Index query, Index key) { return query - key < 2 && key - query < 2; }

TEST(Predicate, APlainFunctionIsAMaskToo) {
  EXPECT_TRUE(predicate(near).allows({0, 0, 3, 2}));
  EXPECT_FALSE(predicate(near).allows({0, 0, 3, 1}));
}

TEST(Predicate, ALambdaOfAPositionMayDependOnTheHead) {
  const auto heads = predicate([](Position at) { return at.head == 1; });
  EXPECT_TRUE(heads.allows({0, 1, 0, 0}));
  EXPECT_FALSE(heads.allows({0, 0, 0, 0}));
  EXPECT_TRUE(heed::depends_on_head(heads));
}

TEST(Predicate, ALambdaWithCapturesIsAMaskToo) {
  // A lambda that captures cannot be assigned, and one that captured a const vector cannot even be
  // moved without a copy.
  const std::vector<Index> turns = {0, 0, 1, 1};
  const auto same_turn = [turns](Index query, Index key) {
    return turns[static_cast<std::size_t>(query)] == turns[static_cast<std::size_t>(key)];
  };
  auto mask = predicate(same_turn);
  static_assert(MaskPolicy<decltype(mask)> && TiledMaskPolicy<decltype(mask)>);
  auto other = predicate(same_turn);
  other = mask;
  EXPECT_TRUE(other.allows({0, 0, 3, 2}));
  EXPECT_FALSE((Causal{} & mask).allows({0, 0, 3, 1}));
  EXPECT_TRUE((Causal{} & ~mask).allows({0, 0, 3, 1}));
}

bool from(unsigned query, unsigned key) { return key <= query; }

TEST(Predicate, UnsignedPositionsAreRefusedWhereAQueryStandsBeforeTheFirstKey) {
  const auto refuse = [](const auto& mask) {
    EXPECT_NO_THROW(heed::check_mask(mask, MaskShape{1, 1, 4, 4}));
    EXPECT_NO_THROW(heed::check_mask(mask, MaskShape{1, 1, 4, 2, 0}));
    EXPECT_NO_THROW(heed::check_mask(mask, MaskShape{1, 1, 0, 0}));
    EXPECT_THROW(heed::check_mask(mask, MaskShape{1, 1, 4, 2}), InvalidArgument);
  };
  const auto two = [](std::size_t query, std::size_t key) { return key <= query; };
  refuse(two);
  refuse(predicate(two));
  refuse(predicate(two, [](Tile) { return Coverage::partial; }));
  refuse([](Index query, std::size_t key) noexcept { return key > 3 || query > 2; });
  refuse(&from);
  refuse(Causal{} & two);
  refuse(~Mask(two));
  EXPECT_NO_THROW(
      heed::check_mask([](int query, Index key) { return key <= query; }, MaskShape{1, 1, 4, 2}));
  EXPECT_NO_THROW(
      heed::check_mask([](auto query, auto key) { return key <= query; }, MaskShape{1, 1, 4, 2}));
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
