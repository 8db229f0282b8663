// SPDX-License-Identifier: MIT
#include <heed/masks/strided.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Strided, CountsFromTheQuery) {
  const Strided stride{3};
  EXPECT_TRUE(stride.allows({0, 0, 7, 7}));
  EXPECT_TRUE(stride.allows({0, 0, 7, 1}));
  EXPECT_TRUE(stride.allows({0, 0, 7, 10}));
  EXPECT_FALSE(stride.allows({0, 0, 7, 5}));
  EXPECT_EQ(Strided{100}.coverage({0, 0, 50, 59, 70, 79}), Coverage::none);
  EXPECT_THROW(Strided{0}.check({}), ShapeError);
}

}  // namespace
}  // namespace heed::masks
