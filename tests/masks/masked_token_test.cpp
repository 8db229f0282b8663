// SPDX-License-Identifier: MIT
#include <heed/masks/tokens.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(MaskedToken, DoesNotSeeItself) {
  const MaskedToken mask({2, 5});
  EXPECT_FALSE(mask.allows({0, 0, 2, 2}));
  EXPECT_TRUE(mask.allows({0, 0, 3, 3}));
  EXPECT_TRUE(mask.allows({0, 0, 2, 5}));
  EXPECT_EQ(mask.coverage({0, 0, 5, 5, 5, 5}), Coverage::none);
  EXPECT_EQ(mask.coverage({0, 0, 0, 9, 3, 4}), Coverage::full);
  EXPECT_THROW(MaskedToken({-1}), InvalidArgument);
}

}  // namespace
}  // namespace heed::masks
