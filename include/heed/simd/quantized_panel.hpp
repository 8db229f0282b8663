// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/index.hpp>
#include <heed/simd/product_tile.hpp>

namespace heed {

namespace simd {

/// What the codes of quantized weights are: 4 bits, 0 to 15; 4 bits for -8 to 7; 8 bits with a
/// sign.
enum class QuantizedCodes : std::uint8_t { nibbles, signed_nibbles, bytes };

}  // namespace simd

/// How products with quantized weights are computed: with the bits of the product with the
/// dequantized floats, or with the left-hand rows rounded to 16 bits (simd::RoundedRows), which
/// takes about half the time.
enum class QuantizedProducts : std::uint8_t { exact, rounded };

namespace simd {

/// Quantized weights of panel_columns columns, in blocks of 32 terms, as a product reads them: for
/// every block a scale per column and, for nibbles, a least value per column, both in half
/// precision, then words of 32 bits per column with the codes. A weight is scale · code (+ least),
/// rounded once. For exact products the codes follow one another from the lowest bits of the first
/// word. For rounded ones, terms i and i + 16 of a block make pair i, since integer products come
/// in pairs: pairs follow one another, 4 of nibbles or 2 of bytes to a word, the second of a pair
/// 16 bits above the first.
struct QuantizedPanel {
  static constexpr Index terms = 32;  // in a block

  const std::uint8_t* blocks = nullptr;
  QuantizedCodes codes = QuantizedCodes::nibbles;
  QuantizedProducts products = QuantizedProducts::exact;

  static constexpr Index block_bytes(QuantizedCodes codes) {
    const Index halves = codes == QuantizedCodes::nibbles ? 2 : 1;
    return panel_columns * (2 * halves + (codes == QuantizedCodes::bytes ? terms : terms / 2));
  }
};

}  // namespace simd
}  // namespace heed
