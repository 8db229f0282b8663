// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/detail/product.hpp>
#include <heed/core/half.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// 256 weights in 210 bytes, as GGUF files store them: weight = (scale · scales[i / 16]) · (value −
/// 32), where value has 6 bits: 4 in `low`, 2 in `high`. Each half of 128 weights is four rows of
/// 32: their low bits lie in 64 bytes (rows 0 and 1 in the low halves, rows 2 and 3 in the high),
/// their high bits in 32 bytes, 2 bits a row.
struct Q6_K {
  static constexpr Index length = 256;

  std::uint8_t low[128];
  std::uint8_t high[64];
  std::int8_t scales[16];
  std::uint16_t scale;  // half precision

  /// The 256 weights.
  void dequantize(float* weights) const {
    const float factor = float_of_half(scale);
    for (Index i = 0; i < length; ++i) {
      const Index half = i / 128, row = i / 32 % 4, column = i % 32;
      const int four = low[half * 64 + row % 2 * 32 + column] >> (row / 2 * 4) & 15;
      const int two = high[half * 32 + column] >> (row * 2) & 3;
      const auto of_sixteen = static_cast<float>(scales[i / 16]);  // NOLINT: whole on purpose
      const float step = detail::product(factor, of_sixteen);
      weights[i] = step * static_cast<float>((four | two << 4) - 32);
    }
  }
};
static_assert(sizeof(Q6_K) == 210);

}  // namespace heed
