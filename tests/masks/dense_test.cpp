// SPDX-License-Identifier: MIT
#include <heed/masks/dense.hpp>

#include <gtest/gtest.h>

#include <array>

#include <heed/masks/causal.hpp>

namespace heed::masks {
namespace {

TEST(Dense, RowsLineUpWithTheLastKey) {
  const std::array<bool, 6> allowed = {true, false, false,  //
                                       true, true,  false};
  const Dense mask(std::span<const bool>(allowed), {1, 1, 2, 3});
  EXPECT_TRUE(mask.allows({0, 0, 1, 0})) << "row 0 is position 1 of 3";
  EXPECT_TRUE(mask.allows({0, 0, 2, 1}));
  EXPECT_FALSE(mask.allows({0, 0, 1, 1}));
  EXPECT_FALSE(mask.allows({0, 0, 0, 0})) << "before the first row";
  const Dense top(std::span<const bool>(allowed), {1, 1, 2, 3}, 0);
  EXPECT_TRUE(top.allows({0, 0, 1, 1}));
}

TEST(Dense, ExtentsOfOneServeAll) {
  const std::array<bool, 2> allowed = {true, false};
  const Dense per_head(std::span<const bool>(allowed), {1, 2, 1, 1});
  EXPECT_TRUE(per_head.allows({3, 0, 77, 5}));
  EXPECT_FALSE(per_head.allows({3, 1, 77, 5}));
  EXPECT_TRUE(heed::depends_on_head(per_head));
  EXPECT_NO_THROW(per_head.check({9, 2, 30, 40}));
  EXPECT_THROW(per_head.check({9, 3, 30, 40}), ShapeError);
}

bool upper(Index, Index, Index row, Index key) { return key > row; }

TEST(Dense, FromAPlainFunction) {
  const Dense mask({1, 1, 3, 3}, upper);
  EXPECT_TRUE(mask.allows({0, 0, 0, 2}));
  EXPECT_FALSE(mask.allows({0, 0, 2, 2}));
}

TEST(Dense, CountsMustFit) {
  const std::array<bool, 2> allowed = {true, false};
  EXPECT_THROW(Dense(std::span<const bool>(allowed), {1, 1, 1, 3}), ShapeError);
  EXPECT_THROW(dense(Causal{}, {1, 1, -1, 3}), ShapeError);
}

TEST(Dense, ExtentsThatWouldOverflowAreRefused) {
  const auto all = [](Index, Index, Index, Index) { return true; };
  const Index large = Index{1} << 32;
  EXPECT_THROW(Dense({1, 1, large, large}, all), ShapeError);
  EXPECT_THROW(Dense({large, 0, large, large}, all), ShapeError);
  EXPECT_NO_THROW(Dense({2, 2, 0, 5}, all));
}

TEST(Dense, WhatIsOutsideSeesNothing) {
  const Dense mask({2, 2, 3, 3}, [](Index, Index, Index, Index) { return true; });
  EXPECT_TRUE(mask.allows({1, 1, 2, 2}));
  for (const Position at : {Position{2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 3, 0}, {0, 0, 0, 3}}) {
    EXPECT_FALSE(mask.allows(at));
  }
}

}  // namespace
}  // namespace heed::masks
