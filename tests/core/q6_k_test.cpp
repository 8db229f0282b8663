// SPDX-License-Identifier: MIT
#include <heed/core/quantized.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

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
