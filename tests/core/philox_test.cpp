// SPDX-License-Identifier: MIT
#include <heed/core/philox.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

// The three philox4x32-10 lines of Random123's kat_vectors.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsAConstantExpression) {
  static_assert(philox({}, {})[0] == 0x6627e8d5);
  constexpr PhiloxCounter layer_3_head_2 = philox({17, 4, 2, 3}, {42, 0});
  static_assert(layer_3_head_2 != philox({18, 4, 2, 3}, {42, 0}));
}

}  // namespace
}  // namespace heed
