// SPDX-License-Identifier: MIT
#include <heed/masks/sparse.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(GlobalTokens, SeeAllAndAreSeenByAll) {
  const GlobalTokens mask({0, 7});
  EXPECT_TRUE(mask.allows({0, 0, 7, 3}));
  EXPECT_TRUE(mask.allows({0, 0, 3, 0}));
  EXPECT_FALSE(mask.allows({0, 0, 3, 4}));
  EXPECT_FALSE(mask.allows({0, 0, -1, 100}));
  EXPECT_EQ(GlobalTokens({}).coverage({0, 0, 0, 9, 0, 9}), Coverage::none);
  EXPECT_THROW(GlobalTokens({3, -1}), InvalidArgument);
}

TEST(GlobalTokens, AFarPositionCostsNoMemory) {
  const GlobalTokens mask({Index{1} << 60, 5});
  EXPECT_TRUE(mask.allows({0, 0, Index{1} << 60, 3}));
  EXPECT_EQ(mask.coverage({0, 0, 6, 69, 0, 4}), Coverage::none);
}

}  // namespace
}  // namespace heed::masks
