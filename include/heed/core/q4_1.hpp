// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/detail/product.hpp>
#include <heed/core/half.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// 32 weights in 20 bytes, as GGUF files store them: weight = scale · value + least. Byte i holds
/// value i in its low half and value i + 16 in its high half.
struct Q4_1 {
  static constexpr Index length = 32;

  std::uint16_t scale, least;  // half precision
  std::uint8_t values[16];

  /// The 32 weights, product and sum each rounded.
  void dequantize(float* weights) const {
    const float factor = float_of_half(scale), start = float_of_half(least);
    for (Index i = 0; i < 16; ++i) {
      weights[i] = detail::product(factor, static_cast<float>(values[i] & 15)) + start;
      weights[i + 16] = detail::product(factor, static_cast<float>(values[i] >> 4)) + start;
    }
  }
};
static_assert(sizeof(Q4_1) == 20);

}  // namespace heed
