// SPDX-License-Identifier: MIT
#include <heed/core/quantized.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(Q4_0, ScaleTimesValueLessEight) {
  Q4_0 block{.scale = half_of_float(-0.5f), .values = {}};
  for (int i = 0; i < 16; ++i) block.values[i] = static_cast<std::uint8_t>(i | (15 - i) << 4);
  float weights[32];
  block.dequantize(weights);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(weights[i], -0.5f * static_cast<float>(i - 8));
    EXPECT_EQ(weights[i + 16], -0.5f * static_cast<float>(7 - i));
  }
}

}  // namespace
}  // namespace heed
