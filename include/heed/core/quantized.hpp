// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/bfloat16.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// 32 weights in 18 bytes, in the format of GGUF files: weight = scale · (value − 8). Byte i holds
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

/// 32 weights in 20 bytes, in the format of GGUF files: weight = scale · value + least. Byte i
/// holds value i in its low half and value i + 16 in its high half.
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

/// 32 weights in 34 bytes, in the format of GGUF files: weight = scale · value.
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

/// 256 weights in 210 bytes, in the format of GGUF files: weight = (scale · scales[i / 16]) ·
/// (value − 32), where value has 6 bits: 4 in `low`, 2 in `high`. Each half of 128 weights is four
/// rows of 32: the low bits are in 64 bytes (rows 0 and 1 in the low halves, rows 2 and 3 in the
/// high), the high bits in 32 bytes, 2 bits per row.
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
