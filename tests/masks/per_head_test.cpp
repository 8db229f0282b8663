// SPDX-License-Identifier: MIT
#include <heed/masks/mask.hpp>

#include <gtest/gtest.h>

#include <cstdint>

#include <heed/masks/intervals.hpp>

namespace heed::masks {
namespace {

TEST(PerHead, EachHeadItsMask) {
  const PerHead mask({Causal{}, Full{}});
  EXPECT_FALSE(mask.allows({0, 0, 1, 2}));
  EXPECT_TRUE(mask.allows({0, 1, 1, 2}));
  EXPECT_EQ(mask.coverage({0, 1, 0, 3, 8, 9}), Coverage::full);
  EXPECT_TRUE(heed::depends_on_head(mask));
  EXPECT_NO_THROW(mask.check({1, 2, 4, 4}));
  EXPECT_THROW(mask.check({1, 3, 4, 4}), ShapeError);
}

TEST(PerHead, AHeadWithoutAMaskSeesNothing) {
  const PerHead mask({Causal{}, Full{}});
  std::uint64_t word = 1;
  mask.lane_words({0, 2, 0, 3, 0, 0}, &word);
  EXPECT_EQ(word, 0u);
  EXPECT_FALSE(mask.allows({0, 2, 1, 0}));
  EXPECT_EQ(mask.coverage({0, -1, 0, 3, 0, 0}), Coverage::none);
}

}  // namespace
}  // namespace heed::masks
