// SPDX-License-Identifier: MIT
#include <heed/models/position_kind.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(PositionKind, ZeroIsNone) { EXPECT_EQ(PositionKind{}, PositionKind::none); }

TEST(PositionKind, SomeActInsideTheBlocks) {
  for (const auto kind : {PositionKind::none, PositionKind::learned, PositionKind::sinusoidal,
                          PositionKind::rotary, PositionKind::relative, PositionKind::alibi}) {
    BlockOptions block;
    detail::set_positions(block, kind, {.base = 7}, 5);
    EXPECT_EQ(block.rotary.has_value(), kind == PositionKind::rotary);
    EXPECT_EQ(block.relative_reach, kind == PositionKind::relative ? 5 : 0);
    EXPECT_EQ(block.alibi, kind == PositionKind::alibi);
    EXPECT_EQ(block.rotary.value_or(RotaryOptions{.base = 7}).base, 7);
  }
}

}  // namespace
}  // namespace heed
