// SPDX-License-Identifier: MIT
#include <heed/masks/sparse.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace heed::masks {
namespace {

TEST(Strided, CountsFromTheQuery) {
  const Strided stride{3};
  EXPECT_TRUE(stride.allows({0, 0, 7, 7}));
  EXPECT_TRUE(stride.allows({0, 0, 7, 1}));
  EXPECT_TRUE(stride.allows({0, 0, 7, 10}));
  EXPECT_FALSE(stride.allows({0, 0, 7, 5}));
  EXPECT_EQ(Strided{100}.coverage({0, 0, 50, 59, 70, 79}), Coverage::none);
  EXPECT_THROW(Strided{0}.check({}), InvalidArgument);
}

TEST(Strided, HugeAndRefusedSteps) {
  const Strided self{std::numeric_limits<Index>::max()};
  std::uint64_t words[2] = {};
  self.lane_words({0, 0, 3, 66, 5, 6}, words);
  EXPECT_EQ(words[0], std::uint64_t{1} << 2);
  EXPECT_EQ(words[1], std::uint64_t{1} << 3);
  EXPECT_THROW(Strided{0}.coverage({}), InvalidArgument) << "not a division by zero";
}

}  // namespace
}  // namespace heed::masks
