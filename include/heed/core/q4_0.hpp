// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/half.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// 32 weights in 18 bytes, as GGUF files store them: weight = scale · (value − 8). Byte i holds
/// value i in its low half and value i + 16 in its high half.
struct Q4_0 {
  static constexpr Index length = 32;

  std::uint16_t scale;  // half precision
  std::uint8_t values[16];

  /// The 32 weights.
  void dequantize(float* weights) const {
    const float factor = float_of_half(scale);
    for (Index i = 0; i < 16; ++i) {
      weights[i] = factor * static_cast<float>((values[i] & 15) - 8);
      weights[i + 16] = factor * static_cast<float>((values[i] >> 4) - 8);
    }
  }
};
static_assert(sizeof(Q4_0) == 18);

}  // namespace heed
