// SPDX-License-Identifier: MIT
#include <heed/masks/intervals.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace heed::masks {
namespace {

TEST(Chunked, OnlyTheOwnBlock) {
  const Chunked chunks{4};
  EXPECT_TRUE(chunks.allows({0, 0, 7, 4}));
  EXPECT_FALSE(chunks.allows({0, 0, 7, 8}));
  EXPECT_FALSE(chunks.allows({0, 0, -1, 0})) << "position -1 is in the block before";
  EXPECT_EQ(coverage_of(chunks, Tile{0, 0, 4, 7, 4, 7}), Coverage::full);
  EXPECT_THROW(Chunked{0}.check({}), InvalidArgument);
}

TEST(Chunked, HugeAndRefusedSizes) {
  const Chunked one{std::numeric_limits<Index>::max()};
  std::uint64_t word = 0;
  fill_lane_words(one, {0, 0, 3, 66, 5, 5}, &word);
  EXPECT_EQ(word, ~std::uint64_t{0});
  EXPECT_EQ(coverage_of(one, Tile{0, 0, 3, 66, 0, 95}), Coverage::full);
  EXPECT_THROW(Chunked{0}.allows({}), InvalidArgument) << "not a division by zero";
}

}  // namespace
}  // namespace heed::masks
