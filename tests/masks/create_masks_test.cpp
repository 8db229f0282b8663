// SPDX-License-Identifier: MIT
#include <heed/masks/create_masks.hpp>

#include <gtest/gtest.h>

#include <array>

namespace heed::masks {
namespace {

TEST(CreateMasks, SourceTargetAndMemory) {
  const std::array<int, 4> source = {7, 8, 9, 0};
  const std::array<int, 3> target = {4, 5, 0};
  const auto masks =
      create_masks(std::span<const int>(source), 4, std::span<const int>(target), 3, 0);
  EXPECT_TRUE(masks.source.allows({0, 0, 0, 2}));
  EXPECT_FALSE(masks.source.allows({0, 0, 0, 3}));
  EXPECT_TRUE(masks.target.allows({0, 0, 1, 0}));
  EXPECT_FALSE(masks.target.allows({0, 0, 0, 1})) << "later token";
  EXPECT_FALSE(masks.target.allows({0, 0, 2, 2})) << "padding";
  EXPECT_TRUE(masks.memory.allows({0, 0, 2, 0}));
  EXPECT_FALSE(masks.memory.allows({0, 0, 2, 3}));
}

}  // namespace
}  // namespace heed::masks
