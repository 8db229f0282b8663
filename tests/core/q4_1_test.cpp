// SPDX-License-Identifier: MIT
#include <heed/core/quantized.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(Q4_1, ScaleTimesValueAndLeastEachRounded) {
  Q4_1 block{.scale = half_of_float(0.1f), .least = half_of_float(-0.7f), .values = {}};
  for (int i = 0; i < 16; ++i) block.values[i] = static_cast<std::uint8_t>(i | (15 - i) << 4);
  float weights[32];
  block.dequantize(weights);
  const float scale = float_of_half(block.scale), least = float_of_half(block.least);
  for (int i = 0; i < 16; ++i) {
    const volatile float product = scale * static_cast<float>(i);  // rounded before it is added to
    EXPECT_EQ(weights[i], product + least);
    EXPECT_EQ(weights[31 - i], product + least);
  }
}

}  // namespace
}  // namespace heed
