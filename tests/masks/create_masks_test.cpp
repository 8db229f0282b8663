// SPDX-License-Identifier: MIT
#include <heed/masks/tokens.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

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

TEST(CreateMasks, TakesAnyRowsOfIdsAndRefusesUnequalBatches) {
  const std::vector<std::int64_t> source = {7, 0, 8, 9}, target = {4, 5};
  const auto masks = create_masks(source, 2, target, 1, 0);
  EXPECT_FALSE(masks.memory.allows({0, 0, 0, 1}));
  EXPECT_TRUE(masks.target.allows({1, 0, 0, 0}));
  EXPECT_THROW(create_masks(source, 2, target, 2, 0), ShapeError);
  EXPECT_THROW(create_masks(source, 3, target, 1, 0), ShapeError);
}

}  // namespace
}  // namespace heed::masks
