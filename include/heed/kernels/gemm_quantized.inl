// SPDX-License-Identifier: MIT
// Products with weights of 16 bits or in blocks of codes, which are read as they are stored, and
// the table of products. Included by part.inl, after gemm.inl.

// Vectors for quantized weights.

struct QuantizedWords {
  using S = Lanes<float>;
  using V = S::V;
  static constexpr Index terms = QuantizedPanel::terms;
  static constexpr Index prefetch_bytes = 4096;  // measured: 6 % more weights per second
  template <QuantizedCodes Codes>
  static constexpr Index block_bytes = QuantizedPanel::block_bytes(Codes);

#if HEED_SIMD_BYTES == 0
  using Words = std::int32_t;
  HEED_SIMD static V numbers(Words words) { return static_cast<float>(words); }
#else
  using Words = S::Ints;
  HEED_SIMD static V numbers(Words words) { return __builtin_convertvector(words, V); }
#endif
  using Unsigned = WholeWords;
  template <class Vector>
  HEED_SIMD static Vector load(const void* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof(vector));
    return vector;
  }

  /// Half precision as float, from the low bits of each lane.
  HEED_SIMD static V from_half_bits(Unsigned halves) {
#if HEED_SIMD_BYTES == 64
    return from_halves((Signed)lower_halves(halves));
#else
    // A product moves the exponent; infinities and NaN need a special case.
    const Unsigned magnitude = (halves & 0x7fff) << 13;
    const V moved = __builtin_bit_cast(V, magnitude) * S::broadcast(0x1p112f);
    const Unsigned special = magnitude >= 0x0f800000 ? Unsigned{} + 0x7f800000u : Unsigned{};
    return __builtin_bit_cast(
        V, __builtin_bit_cast(Unsigned, moved) | special | (halves & 0x8000) << 16);
#endif
  }
  HEED_SIMD static V from_halves(const std::uint8_t* from) {
#if HEED_SIMD_BYTES == 64
    return from_halves(load<Signed>(from));
#else
    return from_half_bits(load_widened(from));
#endif
  }
#if HEED_SIMD_BYTES == 64
  typedef std::int16_t Signed __attribute__((vector_size(32)));
  HEED_SIMD static V from_halves(Signed halves) {
    return __builtin_ia32_vcvtph2ps512_mask(halves, V{}, static_cast<unsigned short>(-1), 4);
  }
#endif

  static constexpr bool has_least(QuantizedCodes codes) { return codes == QuantizedCodes::nibbles; }
};

// Products with weights of 16 bits, a word with two terms per column: PairWords reads words for
// rows that widen them (below) or multiply them as pairs (gemm_bfloat16.inl).

/// Vectors of such words.
struct PairWords : QuantizedWords {
  using Floats = ProductTable<float>;
  static constexpr int vectors = Floats::half_lines ? 8 : 4;  // of columns, in a product of one row

  /// The terms of each word: the first in its upper half (see QuantizedPanel), then the second.
  template <QuantizedCodes Codes>
  HEED_SIMD static V first(Unsigned words) {
    if constexpr (Codes == QuantizedCodes::half) return from_half_bits(words >> 16);
    return __builtin_bit_cast(V, words & (Unsigned{} + 0xffff0000u));
  }
  template <QuantizedCodes Codes>
  HEED_SIMD static V second(Unsigned words) {
    if constexpr (Codes == QuantizedCodes::half) return from_half_bits(words & 0xffff);
    return __builtin_bit_cast(V, words << 16);
  }

  /// Prefetches, line by line, words that lie `later` bytes behind these.
  template <int Level, int Vectors>
  HEED_SIMD static void fetch(const std::uint8_t* words, Index later) {
    HEED_UNROLL for (int at = 0; at < 4 * Vectors * S::width; at += 64) {
      __builtin_prefetch(words + later + at, 0, Level);
    }
  }
  /// Prefetches what a step reads later. From memory, 1 to 4 rows take 0.7 to 0.9 of the time with
  /// the second level of a Zen 4 (see prefetches_near); many rows find a panel there. With vectors
  /// of 32 bytes, rows share short runs of a panel, which the processor does not foresee: words
  /// that are read soon come closer, and `next`, one run of what lies behind the panel, so that all
  /// of it has come after the last lanes: 4 rows took 0.66 of the time from memory, 8 rows 0.8.
  template <int Rows, int Vectors>
  HEED_SIMD static void fetch_later(const std::uint8_t* words, const std::uint8_t* next,
                                    bool near) {
    if constexpr (Floats::half_lines && Rows > 1) {
      fetch<3, Vectors>(words, prefetch_bytes / 2);
      fetch<2, Vectors>(next, 0);
    } else if (Rows == product_rows || near) {
      fetch<3, Vectors>(words, prefetch_bytes);
    } else {
      fetch<2, Vectors>(words, prefetch_bytes);
    }
  }
  /// `rows.add(row, k, words, sums)` adds the terms k and k + 1 to the sums of some rows.
  template <int Rows, int Vectors, class AddRows>
  HEED_KERNEL static void part(const ProductPiece<float>& piece, const std::uint8_t* blocks,
                               const AddRows& rows, Index row, Index lane) {
    V sums[Rows][Vectors] = {};
    Floats::fetch_out<Rows, Vectors>(piece, row, lane);
    const Index steps = (piece.depth + 1) / 2;
    const std::uint8_t* words = blocks + 4 * lane;
    const std::uint8_t* next = blocks + 4 * steps * (panel_columns + lane);
    for (Index k = 0; k < piece.depth; k += 2, words += 4 * panel_columns) {
      fetch_later<Rows, Vectors>(words, next, piece.near);
      next += 4 * Vectors * S::width;
      add_words<Rows, Vectors>(words, rows, row, k, sums);
    }
    Floats::finish<Rows, Vectors>(piece, row, lane, sums);
  }
  /// A single row meets a vector of words at a time: all of them would not stay in registers.
  template <int Rows, int Vectors, class AddRows>
  HEED_SIMD static void add_words(const std::uint8_t* words, const AddRows& rows, Index row,
                                  Index k, V (&sums)[Rows][Vectors]) {
    constexpr int together = Rows == 1 && Floats::half_lines ? 1 : Vectors;
    HEED_UNROLL for (int first = 0; first < Vectors; first += together) {
      Unsigned held[together];
      V some[Rows][together];
      HEED_UNROLL for (int j = 0; j < together; ++j) {
        held[j] = load<Unsigned>(words + 4 * (first + j) * S::width);
        HEED_UNROLL for (int r = 0; r < Rows; ++r) some[r][j] = sums[r][first + j];
      }
      rows.add(row, k, held, some);
      HEED_UNROLL for (int j = 0; j < together; ++j) {
        HEED_UNROLL for (int r = 0; r < Rows; ++r) sums[r][first + j] = some[r][j];
      }
    }
  }
  template <int Rows, int Vectors, class AddRows>
  HEED_SIMD static void across(const ProductPiece<float>& piece, const std::uint8_t* blocks,
                               const AddRows& rows, Index row) {
    for (Index lane = 0; lane < piece.columns; lane += Vectors * S::width) {
      part<Rows, Vectors>(piece, blocks, rows, row, lane);
    }
  }
  template <class AddRows>
  HEED_SIMD static void piece(const ProductPiece<float>& piece, const std::uint8_t* blocks,
                              const AddRows& rows) {
    Index row = 0;
    for (; row + product_rows <= piece.rows; row += product_rows) {
      across<product_rows, HEED_SIMD_VECTORS>(piece, blocks, rows, row);
    }
    if constexpr (Floats::half_lines) {
      if (row + 4 <= piece.rows) {
        across<4, HEED_SIMD_VECTORS>(piece, blocks, rows, row);
        row += 4;
      }
    }
    for (; row + 2 <= piece.rows; row += 2)
      across<2, Floats::pair_vectors>(piece, blocks, rows, row);
    if (row < piece.rows) across<1, vectors>(piece, blocks, rows, row);
  }
};

/// The product with weights of 16 bits, widened in registers: the bits of the float product.
template <QuantizedCodes Codes>
struct WidenedProduct : PairWords {
  struct FloatRows {
    MatrixRef<float> a;
    Index depth;

    template <int Rows, int Vectors>
    HEED_SIMD void add(Index row, Index k, const Unsigned (&words)[Vectors],
                       V (&sums)[Rows][Vectors]) const {
      const float* from = a.data + row * a.row_stride + k * a.column_stride;
      V weights[Vectors];
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) weights[j] = first<Codes>(words[j]);
      add_term(from, weights, sums);
      if (k + 1 == depth) return;
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) weights[j] = second<Codes>(words[j]);
      add_term(from + a.column_stride, weights, sums);
    }
    template <int Rows, int Vectors>
    HEED_SIMD void add_term(const float* from, const V (&weights)[Vectors],
                            V (&sums)[Rows][Vectors]) const {
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        const V value = S::broadcast(from[r * a.row_stride]);
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          sums[r][j] = S::fma(value, weights[j], sums[r][j]);
        }
      }
    }
  };

  HEED_KERNEL static void piece(const ProductPiece<float>& piece, const std::uint8_t* blocks) {
    PairWords::piece(piece, blocks, FloatRows{piece.a, piece.depth});
  }

  HEED_KERNEL static void unpack(const std::uint8_t* blocks, Index depth, float* packed) {
    for (Index k = 0; k < depth; k += 2, blocks += 4 * panel_columns) {
      for (Index lane = 0; lane < panel_columns; lane += S::width) {
        const auto held = load<Unsigned>(blocks + 4 * lane);
        S::store(packed + k * panel_columns + lane, first<Codes>(held));
        if (k + 1 == depth) continue;
        S::store(packed + (k + 1) * panel_columns + lane, second<Codes>(held));
      }
    }
  }
};

// Products with weights in blocks of codes.

/// The product with quantized weights, read as they are stored.
struct QuantizedProduct : QuantizedWords {
  static constexpr int vectors = 4;

#if HEED_SIMD_BYTES == 64
  /// Entries 0 to 15 of a table: a permutation reads only the lowest 4 bits.
  HEED_SIMD static V entries(V table, Words indices) {
#if defined(__clang__)
    return __builtin_ia32_permvarsf512(table, indices);
#else
    return __builtin_ia32_permvarsf512_mask(table, indices, table, static_cast<unsigned short>(-1));
#endif
  }
  template <int Lowest>
  HEED_SIMD static V nibble_numbers(Words words) {
    V table;
    HEED_UNROLL for (int i = 0; i < 16; ++i) table[i] = static_cast<float>(Lowest + i);
    return entries(table, words);
  }
#else
  template <int Lowest>
  HEED_SIMD static V nibble_numbers(Words words) {
    const V number = numbers(words & 15);
    if constexpr (Lowest == 0) return number;
    return number + S::broadcast(Lowest);
  }
#endif
  /// Code `i` of each word as a number.
  template <QuantizedCodes Codes>
  HEED_SIMD static V code(Words words, int i) {
    if constexpr (Codes == QuantizedCodes::bytes) {
      return numbers((Words)((Unsigned)words << (24 - 8 * i)) >> 24);
    } else {
      constexpr int lowest = Codes == QuantizedCodes::nibbles ? 0 : -8;  // what code 0 stands for
      return nibble_numbers<lowest>(words >> (4 * i));
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
          __builtin_prefetch(words + 4 * j * S::width + prefetch_bytes);
        }
        HEED_UNROLL for (int i = 0; i < in_word; ++i) {
          HEED_UNROLL for (int j = 0; j < vectors; ++j) {
            // The product has at most 19 bits: rounded once, fused or not.
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
      block += block_bytes<Codes>;
    }
  }

  template <QuantizedCodes Codes>
  HEED_KERNEL static void row(const ProductPiece<float>& piece, const std::uint8_t* blocks) {
    for (Index lane = 0; lane < piece.columns; lane += vectors * S::width) {
      const float* a = piece.a.data;
      V value{}, sums[1][vectors];
      HEED_UNROLL for (int j = 0; j < vectors; ++j) sums[0][j] = S::broadcast(0);
      each_term<Codes>(blocks, lane, piece.depth, [&](Index, int j, V weights) HEED_LAMBDA {
        if (j == 0) {
          value = S::broadcast(*a);
          a += piece.a.column_stride;
        }
        sums[0][j] = S::fma(value, weights, sums[0][j]);
      });
      ProductTable<float>::finish<1, vectors>(piece, 0, lane, sums);
    }
  }
  template <QuantizedCodes Codes>
  HEED_KERNEL static void unpack(const std::uint8_t* blocks, Index depth, float* packed) {
    for (Index lane = 0; lane < panel_columns; lane += vectors * S::width) {
      each_term<Codes>(blocks, lane, depth, [&](Index term, int j, V weights) HEED_LAMBDA {
        S::store(packed + term * panel_columns + lane + j * S::width, weights);
      });
    }
  }

  // Functions in the order of QuantizedCodes.
  using C = QuantizedCodes;
  static_assert(C{0} == C::nibbles && C{1} == C::signed_nibbles && C{2} == C::bytes &&
                C{3} == C::bfloat16 && C{4} == C::half);
  static void quantized_piece(const ProductPiece<float>& piece, const QuantizedPanel& panel) {
    static constexpr void (*of_codes[])(const ProductPiece<float>&, const std::uint8_t*) = {
        row<C::nibbles>, row<C::signed_nibbles>, row<C::bytes>, WidenedProduct<C::bfloat16>::piece,
        WidenedProduct<C::half>::piece};
    of_codes[static_cast<int>(panel.codes)](piece, panel.blocks);
  }
  static void dequantize(const QuantizedPanel& panel, Index depth, float* packed) {
    static constexpr void (*of_codes[])(const std::uint8_t*, Index, float*) = {
        unpack<C::nibbles>, unpack<C::signed_nibbles>, unpack<C::bytes>,
        WidenedProduct<C::bfloat16>::unpack, WidenedProduct<C::half>::unpack};
    of_codes[static_cast<int>(panel.codes)](panel.blocks, depth, packed);
  }
};

template <class T>
const ProductKernels<T>& product_table() {
  using K = ProductTable<T>;
  using Q = QuantizedProduct;
  if constexpr (sizeof(T) == 4) {
    static constexpr ProductKernels<T> entries{K::pack,       K::piece,           K::lying_piece,
                                               Q::dequantize, Q::quantized_piece, K::lying_rows};
    return entries;
  } else {
    static constexpr ProductKernels<T> entries{K::pack, K::piece, K::lying_piece,
                                               nullptr, nullptr,  K::lying_rows};
    return entries;
  }
}
