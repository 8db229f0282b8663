// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/half.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// 32 weights in 34 bytes, as GGUF files store them: weight = scale · value.
struct Q8_0 {
  static constexpr Index length = 32;

  std::uint16_t scale;  // half precision
  std::int8_t values[32];

  /// The 32 weights.
  void dequantize(float* weights) const {
    const float factor = float_of_half(scale);
    for (Index i = 0; i < length; ++i) weights[i] = factor * static_cast<float>(values[i]);
  }
};
static_assert(sizeof(Q8_0) == 34);

}  // namespace heed
