// SPDX-License-Identifier: MIT
#include <heed/masks/detail/mask_ref.hpp>

#include <gtest/gtest.h>

#include <heed/masks/intervals.hpp>

namespace heed::masks {
namespace {

TEST(MaskRef, AsksTheMaskItPointsTo) {
  const Causal causal;
  const MaskRef reference(causal);
  EXPECT_EQ(reference.coverage({0, 0, 0, 3, 8, 9}), Coverage::none);
  std::uint64_t word = 0;
  reference.lane_words({0, 0, 0, 3, 2, 2}, &word);
  EXPECT_EQ(word & 15, 12u);
  EXPECT_FALSE(reference.shares_lane_words()) << "closed forms are cheaper than keeping";
}

}  // namespace
}  // namespace heed::masks
