// SPDX-License-Identifier: MIT
// Products with weights in blocks of codes. Included by part.inl after product.inl's table
// and quantized_words.inl.

/// The product with quantized weights, which are read as they are stored.
struct QuantizedProduct : QuantizedWords {
  static constexpr int vectors = 4;
  static constexpr Index read_ahead = 4096;  // bytes; measured, 6 % more weights a second

#if HEED_SIMD_BYTES == 64
  /// Entries 0 to 15 of a table: a permutation reads no more than the lowest 4 bits.
  HEED_SIMD static V entries(V table, Words indices) {
#if defined(__clang__)
    return __builtin_ia32_permvarsf512(table, indices);
#else
    return __builtin_ia32_permvarsf512_mask(table, indices, table, static_cast<unsigned short>(-1));
#endif
  }
  template <int Least>
  HEED_SIMD static V nibble_numbers(Words words) {
    V table;
    HEED_UNROLL for (int i = 0; i < 16; ++i) table[i] = static_cast<float>(Least + i);
    return entries(table, words);
  }
#else
  template <int Least>
  HEED_SIMD static V nibble_numbers(Words words) {
    const V number = numbers(words & 15);
    if constexpr (Least == 0) return number;
    return number + S::broadcast(Least);
  }
#endif
  /// Code `i` of each word as a number.
  template <QuantizedCodes Codes>
  HEED_SIMD static V code(Words words, int i) {
    if constexpr (Codes == QuantizedCodes::bytes) {
      return numbers((Words)((Unsigned)words << (24 - 8 * i)) >> 24);
    } else {
      return nibble_numbers < Codes == QuantizedCodes::nibbles ? 0 : -8 > (words >> (4 * i));
    }
  }

  /// Calls use(term, j, weights) for `vectors` vectors of columns from `lane`, terms in order.
  template <QuantizedCodes Codes, class Use>
  HEED_SIMD static void each_term(const std::uint8_t* block, Index lane, Index depth,
                                  const Use& use) {
    constexpr bool least_too = has_least(Codes);
    constexpr int in_word = Codes == QuantizedCodes::bytes ? 4 : 8;
    for (Index first = 0; first < depth; first += QuantizedPanel::terms) {
      const std::uint8_t* words = block + (least_too ? 4 : 2) * panel_columns + 4 * lane;
      V scale[vectors], least[vectors];
      HEED_UNROLL for (int j = 0; j < vectors; ++j) {
        const std::uint8_t* scales = block + 2 * (lane + j * S::width);
        scale[j] = from_halves(scales);
        if constexpr (least_too) least[j] = from_halves(scales + 2 * panel_columns);
      }
      for (Index term = first; term < first + QuantizedPanel::terms; term += in_word) {
        Words held[vectors];
        HEED_UNROLL for (int j = 0; j < vectors; ++j) {
          held[j] = load<Words>(words + 4 * j * S::width);
          __builtin_prefetch(words + 4 * j * S::width + read_ahead);
        }
        HEED_UNROLL for (int i = 0; i < in_word; ++i) {
          HEED_UNROLL for (int j = 0; j < vectors; ++j) {
            // The product has at most 19 bits: rounded once, with or without fusing.
            const V number = code<Codes>(held[j], i);
            if constexpr (least_too) {
              use(term + i, j, S::fma(number, scale[j], least[j]));
            } else {
              use(term + i, j, number * scale[j]);
            }
          }
        }
        words += 4 * panel_columns;
      }
      block += QuantizedPanel::block_bytes(Codes);
    }
  }

  template <QuantizedCodes Codes>
  HEED_KERNEL static void row(const ProductTile<float>& tile, const std::uint8_t* blocks) {
    for (Index lane = 0; lane < tile.columns; lane += vectors * S::width) {
      const float* a = tile.a.data;
      V value{}, sums[1][vectors];
      HEED_UNROLL for (int j = 0; j < vectors; ++j) sums[0][j] = S::broadcast(0);
      each_term<Codes>(
          blocks, lane, tile.depth, [&](Index, int j, V weights) __attribute__((always_inline)) {
            if (j == 0) {
              value = S::broadcast(*a);
              a += tile.a.column_stride;
            }
            sums[0][j] = S::fma(value, weights, sums[0][j]);
          });
      ProductTable<float>::finish<1, vectors>(tile, 0, lane, sums);
    }
  }
  template <QuantizedCodes Codes>
  HEED_KERNEL static void unpack(const std::uint8_t* blocks, Index depth, float* packed) {
    for (Index lane = 0; lane < panel_columns; lane += vectors * S::width) {
      each_term<Codes>(
          blocks, lane, depth, [&](Index term, int j, V weights) __attribute__((always_inline)) {
            S::store(packed + term * panel_columns + lane + j * S::width, weights);
          });
    }
  }

  static void quantized_row(const ProductTile<float>& tile, const QuantizedPanel& panel) {
    if (panel.codes == QuantizedCodes::nibbles) {
      row<QuantizedCodes::nibbles>(tile, panel.blocks);
    } else if (panel.codes == QuantizedCodes::signed_nibbles) {
      row<QuantizedCodes::signed_nibbles>(tile, panel.blocks);
    } else {
      row<QuantizedCodes::bytes>(tile, panel.blocks);
    }
  }
  static void dequantize(const QuantizedPanel& panel, Index depth, float* packed) {
    if (panel.codes == QuantizedCodes::nibbles) {
      unpack<QuantizedCodes::nibbles>(panel.blocks, depth, packed);
    } else if (panel.codes == QuantizedCodes::signed_nibbles) {
      unpack<QuantizedCodes::signed_nibbles>(panel.blocks, depth, packed);
    } else {
      unpack<QuantizedCodes::bytes>(panel.blocks, depth, packed);
    }
  }
};

/// The set's matrix product behind pointers.
template <class T>
const ProductKernels<T>& product_table() {
  using K = ProductTable<T>;
  if constexpr (sizeof(T) == 4) {
    static constexpr ProductKernels<T> entries{K::pack, K::tile, QuantizedProduct::dequantize,
                                               QuantizedProduct::quantized_row};
    return entries;
  } else {
    static constexpr ProductKernels<T> entries{K::pack, K::tile, nullptr, nullptr};
    return entries;
  }
}
