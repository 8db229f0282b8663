// SPDX-License-Identifier: MIT
#include <heed/masks/sparse.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(EveryNthKey, EveryNthKeyForEveryone) {
  const EveryNthKey keys{4};
  EXPECT_TRUE(keys.allows({0, 0, 1, 8}));
  EXPECT_FALSE(keys.allows({0, 0, 8, 7}));
  EXPECT_EQ(keys.coverage({0, 0, 0, 63, 5, 7}), Coverage::none);
  EXPECT_EQ(keys.coverage({0, 0, 0, 63, 8, 8}), Coverage::full);
  EXPECT_THROW(EveryNthKey{-1}.check({}), InvalidArgument);
}

}  // namespace
}  // namespace heed::masks
