// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace heed::masks {
namespace {

TEST(Prefix, SeenByAllTheRestCausal) {
  const Prefix prefix(3);
  EXPECT_TRUE(prefix.allows({0, 0, 0, 2}));
  EXPECT_FALSE(prefix.allows({0, 0, 0, 3}));
  EXPECT_TRUE(prefix.allows({0, 0, 4, 4}));
  const Prefix each(std::vector<Index>{0, 5});
  EXPECT_FALSE(each.allows({0, 0, 0, 1}));
  EXPECT_TRUE(each.allows({1, 0, 0, 4}));
  EXPECT_THROW(each.check({3, 1, 9, 9}), ShapeError);
  EXPECT_THROW(Prefix(-1).check({1, 1, 9, 9}), InvalidArgument);
}

}  // namespace
}  // namespace heed::masks
