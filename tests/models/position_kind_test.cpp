// SPDX-License-Identifier: MIT
#include <heed/models/position_kind.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(PositionKind, ZeroIsNone) { EXPECT_EQ(PositionKind{}, PositionKind::none); }

}  // namespace
}  // namespace heed
