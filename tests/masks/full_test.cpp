// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Full, EveryoneSeesEveryone) {
  EXPECT_TRUE(Full{}.allows({0, 0, -5, 100}));
  EXPECT_EQ(coverage_of(Full{}, Tile{0, 0, -5, 5, 0, 1000}), Coverage::full);
  EXPECT_FALSE(heed::depends_on_head(Full{}));
}

}  // namespace
}  // namespace heed::masks
