// SPDX-License-Identifier: MIT
#include <heed/attention/cache_shape.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(CacheShape, ContiguousIsOnePageASequence) {
  const auto shape = CacheShape::contiguous(3, 2, 64, 32, 1000);
  EXPECT_EQ(shape.pages, 3);
  EXPECT_EQ(shape.page_tokens, 1056);
  EXPECT_EQ(CacheShape::contiguous(1, 1, 1, 1, 0).page_tokens, 96);
  EXPECT_NO_THROW(detail::checked(shape));
}

TEST(CacheShape, PagesAreMultiplesOfSixteenTokens) {
  EXPECT_THROW(detail::checked({1, 1, 1, 1, 20, 1}), ShapeError);
  EXPECT_THROW(detail::checked({-1, 1, 1, 1, 16, 1}), ShapeError);
}

}  // namespace
}  // namespace heed
