// SPDX-License-Identifier: MIT
// Matrix products of int16 rows with quantized weights. Included by part.inl, after gemm.inl.

// Rows of numbers rounded to 16 bits.

struct RowRounding : QuantizedWords {
  static constexpr Index pairs = terms / 2;
  static constexpr float least_maximum = 0x1p-100f;  // of a block; smaller counts as 0

  /// Rounds 32 numbers to 16 bits: values i and i + 16 make pair i.
  HEED_SIMD static void round_block(const float* x, std::int32_t* to, Int16Rows::Block& block) {
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
    // Adding 1.5 · 2^23 rounds to an integer in the low bits.
    const auto shifter = S::broadcast(0x1.8p23f);
    const auto rounded = [&](const float* from) HEED_LAMBDA {
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
                                    Int16Rows::Block* blocks) {
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

// Products of int16 rows with weights in blocks of codes.

/// The product of int16 rows with quantized weights: sums of integer products over 32 terms at a
/// time, exact in any order, then fused multiply-adds for each block. `Vnni`: the set has vpdpwssd.
template <bool Vnni>
struct Int16Product : RowRounding {
#if HEED_SIMD_BYTES != 0
  typedef std::int16_t Shorts __attribute__((vector_size(HEED_SIMD_BYTES)));
#endif
  static constexpr int row_vectors = 4;  // of columns, in a product of one row

  /// sums + a·b + a'·b': a lane holds two numbers of 16 bits.
  HEED_SIMD static Words add_products(Words a, Words b, Words sums) {
#if HEED_SIMD_BYTES == 64
    // Assembler, since compilers disagree on the builtins.
    if constexpr (Vnni) {
      asm("vpdpwssd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
      return sums;
    }
    Words products;
    asm("vpmaddwd %2, %1, %0" : "=v"(products) : "v"(a), "v"(b));
    return sums + products;
#elif HEED_SIMD_BYTES == 32
    return sums + (Words)__builtin_ia32_pmaddwd256((Shorts)a, (Shorts)b);
#elif HEED_SIMD_BYTES == 16 && defined(__x86_64__)
    return sums + (Words)__builtin_ia32_pmaddwd128((Shorts)a, (Shorts)b);
#else
    return sums + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
  }

  HEED_SIMD static Words spread(std::int32_t word) { return word - Words{}; }
  /// Pair `i` of the codes in each word, which holds 4 of nibbles or 2 of bytes.
  template <QuantizedCodes Codes>
  HEED_SIMD static Words pair_of(Words words, int i) {
    if constexpr (Codes != QuantizedCodes::bytes) return (words >> (4 * i)) & 0x000f000f;
#if HEED_SIMD_BYTES == 0
    const Words low = (words << (24 - 8 * i)) >> 24, high = (words << (8 - 8 * i)) >> 24;
    return (low & 0xffff) | (high << 16);
#else
    return (Words)((Shorts)((Unsigned)words << (8 - 8 * i)) >> 8);
#endif
  }
  static constexpr int pairs_in_word(QuantizedCodes codes) {
    return codes == QuantizedCodes::bytes ? 2 : 4;
  }
  /// The start value of a sum of products with codes read as 0 to 15: corrects for signed nibbles,
  /// whose code 0 stands for −8.
  HEED_SIMD static Words start(QuantizedCodes codes, std::int32_t total) {
    return spread(codes == QuantizedCodes::signed_nibbles ? -8 * total : 0);
  }

  /// Finishes a block of terms: total += (sum · scale of the row) · scale (+ least · row's sum).
  template <bool Least, int Rows, int Vectors>
  HEED_SIMD static void add_block(const Words (&sums)[Rows][Vectors], const Int16Rows::Block* block,
                                  Index block_stride, const V (&scale)[Vectors],
                                  const V (&least)[Vectors], V (&totals)[Rows][Vectors]) {
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const auto& of_row = block[r * block_stride];
      const V factor = S::broadcast(of_row.scale);
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        totals[r][j] = S::fma(numbers(sums[r][j]) * factor, scale[j], totals[r][j]);
        if constexpr (Least) {
          totals[r][j] = S::fma(S::broadcast(of_row.sum), least[j], totals[r][j]);
        }
      }
    }
  }

  /// One row, with the blocks as stored.
  template <QuantizedCodes Codes>
  HEED_KERNEL static void row(const ProductPiece<float>& piece, const Int16Rows& a,
                              const QuantizedPanel& panel) {
    constexpr int vectors = row_vectors, in_word = pairs_in_word(Codes);
    for (Index lane = 0; lane < piece.columns; lane += vectors * S::width) {
      const std::uint8_t* block = panel.blocks;
      V totals[1][vectors], scale[vectors], least[vectors];
      HEED_UNROLL for (int j = 0; j < vectors; ++j) totals[0][j] = S::broadcast(0);
      for (Index i = 0; i < piece.depth / terms; ++i) {
        const std::uint8_t* words = block + (has_least(Codes) ? 4 : 2) * panel_columns + 4 * lane;
        const std::int32_t* pair = a.pairs + i * pairs;
        Words sums[1][vectors];
        HEED_UNROLL for (int j = 0; j < vectors; ++j) {
          sums[0][j] = start(Codes, a.blocks[i].total);
          const std::uint8_t* scales = block + 2 * (lane + j * S::width);
          scale[j] = from_halves(scales);
          if constexpr (has_least(Codes)) least[j] = from_halves(scales + 2 * panel_columns);
        }
        for (Index p = 0; p < pairs; p += in_word) {
          Words held[vectors];
          HEED_UNROLL for (int j = 0; j < vectors; ++j) {
            held[j] = load<Words>(words + 4 * j * S::width);
            __builtin_prefetch(words + 4 * j * S::width + prefetch_bytes);
          }
          HEED_UNROLL for (int k = 0; k < in_word; ++k) {
            const Words value = spread(pair[p + k]);
            HEED_UNROLL for (int j = 0; j < vectors; ++j) {
              sums[0][j] = add_products(value, pair_of<Codes>(held[j], k), sums[0][j]);
            }
          }
          words += 4 * panel_columns;
        }
        add_block<has_least(Codes)>(sums, a.blocks + i, 0, scale, least, totals);
        block += block_bytes<Codes>;
      }
      ProductTable<float>::template finish<1, vectors>(piece, 0, lane, totals);
    }
  }

  /// The signed codes of two pairs, in bytes.
  template <QuantizedCodes Codes>
  HEED_SIMD static Words quad_of(Words first, Words second) {
    const auto bytes = [](Words pair) HEED_LAMBDA { return (pair & 0xff) | (pair >> 8 & 0xff00); };
    const Words quad = bytes(first) | bytes(second) << 16;
    if constexpr (Codes != QuantizedCodes::signed_nibbles) return quad;
    return (Words)((Unsigned)quad + 0x78787878u) ^ ~0x7f7f7f7f;  // -8 in each byte
  }

  /// Unpacks the codes of a panel, once for many rows.
  template <bool Quads, QuantizedCodes Codes>
  HEED_KERNEL static void unpack_as(const std::uint8_t* from, Index depth, UnpackedBlock* to) {
    constexpr int in_word = pairs_in_word(Codes), step = Quads ? 2 : 1;
    for (; depth > 0; depth -= terms, ++to) {
      for (Index lane = 0; lane < panel_columns; lane += S::width) {
        S::store(to->scale + lane, from_halves(from + 2 * lane));
        if constexpr (has_least(Codes)) {
          S::store(to->least + lane, from_halves(from + 2 * (panel_columns + lane)));
        }
        const std::uint8_t* words = from + (has_least(Codes) ? 4 : 2) * panel_columns + 4 * lane;
        for (Index p = 0; p < pairs; p += in_word) {
          const auto held = load<Words>(words);
          HEED_UNROLL for (int k = 0; k < in_word; k += step) {
            Words word = pair_of<Codes>(held, k);
            if constexpr (Quads) word = quad_of<Codes>(word, pair_of<Codes>(held, k + 1));
            __builtin_memcpy(to->words + (p + k) / step * panel_columns + lane, &word,
                             sizeof(word));
          }
          words += 4 * panel_columns;
        }
      }
      from += block_bytes<Codes>;
    }
  }

  template <bool Least, int Rows, int Vectors>
  HEED_KERNEL static void part(const ProductPiece<float>& piece, const Int16Rows& a,
                               const UnpackedBlock* block, QuantizedCodes codes, Index row,
                               Index lane) {
    V totals[Rows][Vectors], scale[Vectors], least[Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) totals[r][j] = S::broadcast(0);
    }
    const std::int32_t* pair = a.pairs + row * a.pair_stride;
    const Int16Rows::Block* of_row = a.blocks + row * a.block_stride;
    for (Index i = 0; i < piece.depth / terms; ++i, ++block, ++of_row) {
      Words sums[Rows][Vectors];
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          sums[r][j] = start(codes, of_row[r * a.block_stride].total);
        }
      }
      const std::int32_t* codes_of = block->words + lane;
      for (Index p = 0; p < pairs; ++p, ++pair, codes_of += panel_columns) {
        Words lanes[Vectors];
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          lanes[j] = load<Words>(codes_of + j * S::width);
        }
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          const Words value = spread(pair[r * a.pair_stride]);
          HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
            sums[r][j] = add_products(value, lanes[j], sums[r][j]);
          }
        }
      }
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        scale[j] = S::load(block->scale + lane + j * S::width);
        if constexpr (Least) least[j] = S::load(block->least + lane + j * S::width);
      }
      add_block<Least>(sums, of_row, a.block_stride, scale, least, totals);
    }
    ProductTable<float>::template finish<Rows, Vectors>(piece, row, lane, totals);
  }

  template <bool Least>
  HEED_SIMD static void rows(const ProductPiece<float>& piece, const Int16Rows& a,
                             const UnpackedBlock* blocks, QuantizedCodes codes) {
    constexpr int vectors = HEED_SIMD_VECTORS;
    for (Index lane = 0; lane < piece.columns; lane += vectors * S::width) {
      Index row = 0;
      for (; row + product_rows <= piece.rows; row += product_rows) {
        part<Least, static_cast<int>(product_rows), vectors>(piece, a, blocks, codes, row, lane);
      }
      for (; row + 2 <= piece.rows; row += 2) {
        part<Least, 2, vectors>(piece, a, blocks, codes, row, lane);
      }
      if (row < piece.rows) part<Least, 1, vectors>(piece, a, blocks, codes, row, lane);
    }
  }

  // Functions in the order of QuantizedCodes; pairs have no int16 products.
  using C = QuantizedCodes;
  static void int16_row(const ProductPiece<float>& piece, const Int16Rows& a,
                        const QuantizedPanel& panel) {
    static constexpr decltype(&int16_row) of_codes[] = {row<C::nibbles>, row<C::signed_nibbles>,
                                                        row<C::bytes>};
    of_codes[static_cast<int>(panel.codes)](piece, a, panel);
  }
  template <bool Quads>
  static void unpack(const QuantizedPanel& panel, Index depth, UnpackedBlock* to) {
    static constexpr void (*of_codes[])(const std::uint8_t*, Index, UnpackedBlock*) = {
        unpack_as<Quads, C::nibbles>, unpack_as<Quads, C::signed_nibbles>,
        unpack_as<Quads, C::bytes>};
    of_codes[static_cast<int>(panel.codes)](panel.blocks, depth, to);
  }
  static void int16_piece(const ProductPiece<float>& piece, const Int16Rows& a,
                          const UnpackedBlock* blocks, QuantizedCodes codes) {
    return has_least(codes) ? rows<true>(piece, a, blocks, codes)
                            : rows<false>(piece, a, blocks, codes);
  }
};

template <class T, bool Vnni = false>
const Int16Kernels<T>& int16_table() {
  using K = Int16Product<Vnni>;
  constexpr Int16Pieces<T> pieces{product_rows, K::template unpack<false>, K::int16_piece};
  static constexpr Int16Kernels<T> entries{K::round_row, K::int16_row, pieces, pieces};
  return entries;
}
