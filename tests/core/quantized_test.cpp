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

TEST(Q8_0, ScaleTimesValue) {
  Q8_0 block{.scale = half_of_float(0.25f), .values = {}};
  for (int i = 0; i < 32; ++i) block.values[i] = static_cast<std::int8_t>(i == 31 ? -128 : i - 16);
  float weights[32];
  block.dequantize(weights);
  for (int i = 0; i < 31; ++i) EXPECT_EQ(weights[i], 0.25f * static_cast<float>(i - 16));
  EXPECT_EQ(weights[31], -32.f);
}

TEST(Q6_K, EveryValueUnderEveryScale) {
  // Weight i has value 37 i mod 64, put where the format says by walking over its bytes.
  Q6_K block{};
  block.scale = half_of_float(0.5f);
  for (int i = 0; i < 16; ++i) block.scales[i] = static_cast<std::int8_t>(16 * i - 128);
  const auto value = [](int i) { return 37 * i % 64; };
  for (int half = 0; half < 2; ++half) {
    for (int column = 0; column < 32; ++column) {
      const auto at = [&](int row) { return value(half * 128 + row * 32 + column); };
      block.low[half * 64 + column] = static_cast<std::uint8_t>((at(0) & 15) | (at(2) & 15) << 4);
      block.low[half * 64 + 32 + column] =
          static_cast<std::uint8_t>((at(1) & 15) | (at(3) & 15) << 4);
      block.high[half * 32 + column] = static_cast<std::uint8_t>(at(0) >> 4 | at(1) >> 4 << 2 |
                                                                 at(2) >> 4 << 4 | at(3) >> 4 << 6);
    }
  }
  float weights[256];
  block.dequantize(weights);
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(weights[i], 0.5f * static_cast<float>((16 * (i / 16) - 128) * (value(i) - 32))) << i;
  }
}

}  // namespace
}  // namespace heed
