// SPDX-License-Identifier: MIT
#include <heed/attention/key_value_cache.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace heed {
namespace {

TEST(CacheShape, ContiguousIsOnePageASequence) {
  const auto shape = CacheShape::contiguous(3, 2, 64, 32, 1000);
  EXPECT_EQ(shape.pages, 3);
  EXPECT_EQ(shape.page_size, 1056);
  EXPECT_EQ(CacheShape::contiguous(1, 1, 1, 1, 0).page_size, 96);
  EXPECT_NO_THROW(detail::checked(shape));
}

TEST(CacheShape, LengthsThatNoPageHasAreRefused) {
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const Index length : {Index{-1}, Index{-1000}, -most - 1, most, most - 94}) {
    EXPECT_THROW(CacheShape::contiguous(1, 1, 1, 1, length), ShapeError) << length;
  }
  EXPECT_EQ(CacheShape::contiguous(1, 1, 1, 1, most - 95).page_size, most / 96 * 96);
  EXPECT_THROW(detail::checked({1, 1, 0, 0, most / 16 * 16, 2}), ShapeError);
}

TEST(CacheShape, PagesForEverySequence) {
  constexpr Index most = std::numeric_limits<Index>::max();
  EXPECT_EQ((CacheShape{3, 2, 64, 32, 48}.for_tokens(97)).pages, 9);
  EXPECT_EQ((CacheShape{3, 2, 64, 32, 48}.for_tokens(96)).pages, 6);
  EXPECT_EQ((CacheShape{1, 1, 1, 1, most - 15}.for_tokens(most)).pages, 2);
  const auto usual = CacheShape{.batch = 2, .kv_heads = 8, .head_dim = 64}.for_tokens(4096);
  EXPECT_EQ(usual.page_size, 96);
  EXPECT_EQ(usual.pages, 2 * 43);
  EXPECT_THROW((CacheShape{1000, 1, 1, 1, 16}.for_tokens(most)), ShapeError);
  EXPECT_THROW((CacheShape{1, 1, 1, 1, 16}.for_tokens(-1)), ShapeError);
  EXPECT_THROW((CacheShape{1, 1, 1, 1, 0}.for_tokens(5)), ShapeError);
}

TEST(CacheShape, ValuesAreAsWideAsKeysUnlessTheyAreTold) {
  EXPECT_EQ(detail::checked({.head_dim = 64}).value_dim, 64);
  EXPECT_EQ(detail::checked({.head_dim = 64, .value_dim = 0}).value_dim, 0);
  EXPECT_THROW(detail::checked({.head_dim = 64, .value_dim = -2}), ShapeError);
}

TEST(CacheShape, PagesAreMultiplesOfSixteenTokens) {
  EXPECT_THROW(detail::checked({1, 1, 1, 1, 20, 1}), ShapeError);
  EXPECT_THROW(detail::checked({-1, 1, 1, 1, 16, 1}), ShapeError);
  EXPECT_THROW(detail::checked({1, 1, 1, 1, 16, -1}), ShapeError);
}

}  // namespace
}  // namespace heed
