// SPDX-License-Identifier: MIT
#include <heed/core/quantized.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(Q8_0, ScaleTimesValue) {
  Q8_0 block{.scale = half_of_float(0.25f), .values = {}};
  for (int i = 0; i < 32; ++i) block.values[i] = static_cast<std::int8_t>(i == 31 ? -128 : i - 16);
  float weights[32];
  block.dequantize(weights);
  for (int i = 0; i < 31; ++i) EXPECT_EQ(weights[i], 0.25f * static_cast<float>(i - 16));
  EXPECT_EQ(weights[31], -32.f);
}

}  // namespace
}  // namespace heed
