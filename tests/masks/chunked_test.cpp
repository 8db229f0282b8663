// SPDX-License-Identifier: MIT
#include <heed/masks/chunked.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Chunked, OnlyTheOwnBlock) {
  const Chunked chunks{4};
  EXPECT_TRUE(chunks.allows({0, 0, 7, 4}));
  EXPECT_FALSE(chunks.allows({0, 0, 7, 8}));
  EXPECT_FALSE(chunks.allows({0, 0, -1, 0})) << "position -1 is in the block before";
  EXPECT_EQ(chunks.coverage({0, 0, 4, 7, 4, 7}), Coverage::full);
  EXPECT_THROW(Chunked{0}.check({}), ShapeError);
}

}  // namespace
}  // namespace heed::masks
