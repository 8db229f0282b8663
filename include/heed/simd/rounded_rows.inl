// SPDX-License-Identifier: MIT
// Rows of numbers rounded to 16 bits. Included by part.inl after quantized_words.inl.

struct RowRounding : QuantizedWords {
  static constexpr Index pairs = terms / 2;
  static constexpr float least_maximum = 0x1p-100f;  // of a block; below, it counts as 0

  /// Rounds 32 numbers to 16 bits: values i and i + 16 make pair i.
  HEED_SIMD static void round_block(const float* x, std::int32_t* to, RoundedRows::Block& block) {
    Words maxima{}, totals{};
    for (Index i = 0; i < terms; i += S::width) {
      const Words bits = __builtin_bit_cast(Words, S::load(x + i)) & 0x7fffffff;
      maxima = bits > maxima ? bits : maxima;
    }
    std::int32_t lanes[S::width], largest = 0;
    __builtin_memcpy(lanes, &maxima, sizeof(lanes));
    for (const std::int32_t lane : lanes) largest = largest > lane ? largest : lane;
    const auto maximum = __builtin_bit_cast(float, largest);
    const bool finite = maximum < __builtin_inff(), rounds = finite && maximum >= least_maximum;
    const float inverse = rounds ? 32767 / maximum : 0;
    // Adding 1.5 · 2^23 rounds to an integer that stands in the low bits.
    const auto shifter = S::broadcast(0x1.8p23f);
    const auto rounded = [&](const float* from) __attribute__((always_inline)) {
      const V value = rounds ? S::load(from) : V{};
      return __builtin_bit_cast(Words, value * S::broadcast(inverse) + shifter) -
             __builtin_bit_cast(Words, shifter);
    };
    for (Index i = 0; i < pairs; i += S::width) {
      const Words low = rounded(x + i), high = rounded(x + i + pairs);
      totals += low + high;
      const Words pair = (low & 0xffff) | (Words)((Unsigned)high << 16);
      __builtin_memcpy(to + i, &pair, sizeof(pair));
    }
    __builtin_memcpy(lanes, &totals, sizeof(lanes));
    block.total = 0;
    for (const std::int32_t lane : lanes) block.total += lane;
    block.scale = finite ? (rounds ? maximum / 32767 : 0) : __builtin_nanf("");
    block.sum = block.scale * static_cast<float>(block.total);
  }
  HEED_KERNEL static void round_row(const float* x, Index step, Index depth, std::int32_t* to,
                                    RoundedRows::Block* blocks) {
    for (Index first = 0; first < depth; first += terms, ++blocks) {
      float held[terms];
      const float* from = x + first * step;
      if (step != 1) {
        for (Index i = 0; i < terms; ++i) held[i] = from[i * step];
        from = held;
      }
      round_block(from, to + first / 2, *blocks);
    }
  }
};
