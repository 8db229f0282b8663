// SPDX-License-Identifier: MIT
#include <heed/attention/cache_shape.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace heed {
namespace {

TEST(CacheShape, ContiguousIsOnePageASequence) {
  const auto shape = CacheShape::contiguous(3, 2, 64, 32, 1000);
  EXPECT_EQ(shape.pages, 3);
  EXPECT_EQ(shape.page_tokens, 1056);
  EXPECT_EQ(CacheShape::contiguous(1, 1, 1, 1, 0).page_tokens, 96);
  EXPECT_NO_THROW(detail::checked(shape));
}

TEST(CacheShape, LengthsThatNoPageHasAreRefused) {
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const Index length : {Index{-1}, Index{-1000}, -most - 1, most, most - 94}) {
    EXPECT_THROW(CacheShape::contiguous(1, 1, 1, 1, length), ShapeError) << length;
  }
  EXPECT_EQ(CacheShape::contiguous(1, 1, 1, 1, most - 95).page_tokens, most / 96 * 96);
  EXPECT_THROW(detail::checked({1, 1, 0, 0, most / 16 * 16, 2}), ShapeError);
}

TEST(CacheShape, PagesForEverySequence) {
  constexpr Index most = std::numeric_limits<Index>::max();
  EXPECT_EQ(CacheShape::paged(3, 2, 64, 32, 97, 48).pages, 9);
  EXPECT_EQ(CacheShape::paged(3, 2, 64, 32, 96, 48).pages, 6);
  EXPECT_EQ(CacheShape::paged(1, 1, 1, 1, most, most - 15).pages, 2);
  EXPECT_THROW(CacheShape::paged(1000, 1, 1, 1, most, 16), ShapeError);
  EXPECT_THROW(CacheShape::paged(1, 1, 1, 1, -1, 16), ShapeError);
  EXPECT_THROW(CacheShape::paged(1, 1, 1, 1, 5, 0), ShapeError);
}

TEST(CacheShape, PagesAreMultiplesOfSixteenTokens) {
  EXPECT_THROW(detail::checked({1, 1, 1, 1, 20, 1}), ShapeError);
  EXPECT_THROW(detail::checked({-1, 1, 1, 1, 16, 1}), ShapeError);
}

}  // namespace
}  // namespace heed
