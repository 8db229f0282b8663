// SPDX-License-Identifier: MIT
// The matrix product of layers, on the tile product. Included by part.inl.

template <class T>
struct ProductTable {
  using S = Lanes<T>;
  static constexpr int panel = static_cast<int>(panel_columns);
  // A single row needs more columns to keep the multiplier busy.
  static constexpr int single_row_vectors = panel / S::width < 8 ? panel / S::width : 8;

  HEED_KERNEL static void pack(MatrixRef<T> b, Index depth, Index columns, T* packed) {
    Index column = 0;
    if (b.column_stride == 1 && columns == panel) {  // row by row, to read memory sequentially
      for (Index k = 0; k < depth; ++k) {
        HEED_UNROLL for (int at = 0; at < panel; at += S::width) {
          S::store(packed + k * panel + at, S::load(b.data + k * b.row_stride + at));
        }
      }
      return;
    }
    if (b.column_stride == 1) {
      for (; column + S::width <= columns; column += S::width) {
        for (Index k = 0; k < depth; ++k) {
          S::store(packed + k * panel + column, S::load(b.data + k * b.row_stride + column));
        }
      }
    }
    for (; column < columns; column += S::width) {
      pack_lanes<S>(b.data + column * b.column_stride, b.column_stride, b.row_stride,
                    columns - column, depth, T{1}, packed + column, panel);
    }
    for (; columns > S::width && column < panel; column += S::width) {
      for (Index k = 0; k < depth; ++k) S::store(packed + k * panel + column, S::broadcast(0));
    }
  }

  template <int Rows, int Vectors>
  HEED_KERNEL static void part(const ProductTile<T>& tile, Index row, Index lane) {
    typename S::V sums[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::broadcast(0);
    }
    const auto& a = tile.a;
    multiply<S, Rows, Vectors>(a.data + row * a.row_stride, a.row_stride, a.column_stride,
                               tile.b + lane, tile.b_stride, tile.depth, sums);
    finish<Rows, Vectors>(tile, row, lane, sums);
  }

  /// Adds the addend to the sums and writes them out, for as many columns as exist.
  template <int Rows, int Vectors>
  HEED_SIMD static void finish(const ProductTile<T>& tile, Index row, Index lane,
                               typename S::V (&sums)[Rows][Vectors]) {
    const auto& addend = tile.addend;
    const T* add = addend.data + row * addend.row_stride + lane * addend.column_stride;
    T* out = tile.out + row * tile.out_row + lane * tile.out_column;
    if (tile.columns - lane >= Vectors * S::width && tile.out_column == 1 &&
        (addend.data == nullptr || addend.column_stride == 1)) {
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          if (addend.data != nullptr) {
            sums[r][j] = S::load(add + r * addend.row_stride + j * S::width) + sums[r][j];
          }
          S::store(out + r * tile.out_row + j * S::width, sums[r][j]);
        }
      }
      return;
    }
    T spill[Rows][Vectors * S::width];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) S::store(spill[r] + j * S::width, sums[r][j]);
    }
    for (int r = 0; r < Rows; ++r) {
      for (Index c = 0; c < Vectors * S::width && c < tile.columns - lane; ++c) {
        const Index at = r * addend.row_stride + c * addend.column_stride;
        out[r * tile.out_row + c * tile.out_column] =
            addend.data == nullptr ? spill[r][c] : add[at] + spill[r][c];
      }
    }
  }

  template <int Rows, int Vectors>
  HEED_SIMD static void across(const ProductTile<T>& tile, Index row) {
    Index lane = 0;
    for (; lane + S::width < tile.columns; lane += Vectors * S::width) {
      part<Rows, Vectors>(tile, row, lane);
    }
    if (lane < tile.columns) part<Rows, 1>(tile, row, lane);
  }

  HEED_KERNEL static void tile(const ProductTile<T>& tile) {
    Index row = 0;
    for (; row + product_rows <= tile.rows; row += product_rows) {
      across<product_rows, HEED_SIMD_VECTORS>(tile, row);
    }
    for (; row + 2 <= tile.rows; row += 2) across<2, HEED_SIMD_VECTORS>(tile, row);
    if (row < tile.rows) across<1, single_row_vectors>(tile, row);
  }
};

// Vectors for quantized weights.

struct QuantizedWords {
  using S = Lanes<float>;
  using V = S::V;
  static constexpr Index terms = QuantizedPanel::terms;

#if HEED_SIMD_BYTES == 0
  using Words = std::int32_t;
  using Unsigned = std::uint32_t;
  using Halves = std::uint16_t;
  HEED_SIMD static V numbers(Words words) { return static_cast<float>(words); }
  HEED_SIMD static Unsigned widened(Halves halves) { return halves; }
#else
  using Words = S::M;
  typedef std::uint32_t Unsigned __attribute__((vector_size(HEED_SIMD_BYTES)));
  typedef std::uint16_t Halves __attribute__((vector_size(HEED_SIMD_BYTES / 2)));
  HEED_SIMD static V numbers(Words words) { return __builtin_convertvector(words, V); }
  HEED_SIMD static Unsigned widened(Halves halves) {
    return __builtin_convertvector(halves, Unsigned);
  }
#endif
  template <class Vector>
  HEED_SIMD static Vector load(const void* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof(vector));
    return vector;
  }

  /// Half precision as float.
  HEED_SIMD static V from_halves(const std::uint8_t* from) {
#if HEED_SIMD_BYTES == 64
    typedef std::int16_t Signed __attribute__((vector_size(32)));
    return __builtin_ia32_vcvtph2ps512_mask(load<Signed>(from), V{},
                                            static_cast<unsigned short>(-1), 4);
#else
    // A product moves the exponent; infinities and NaN need a special case.
    const Unsigned halves = widened(load<Halves>(from));
    const Unsigned magnitude = (halves & 0x7fff) << 13;
    const V moved = __builtin_bit_cast(V, magnitude) * S::broadcast(0x1p112f);
    const Unsigned special = magnitude >= 0x0f800000 ? Unsigned{} + 0x7f800000u : Unsigned{};
    return __builtin_bit_cast(
        V, __builtin_bit_cast(Unsigned, moved) | special | (halves & 0x8000) << 16);
#endif
  }

  static constexpr bool has_least(QuantizedCodes codes) { return codes == QuantizedCodes::nibbles; }
};

// Products with weights in blocks of codes.

/// The product with quantized weights, read as they are stored.
struct QuantizedProduct : QuantizedWords {
  static constexpr int vectors = 4;
  static constexpr Index prefetch_bytes = 4096;  // measured: 6 % more weights per second

#if HEED_SIMD_BYTES == 64
  /// Entries 0 to 15 of a table: a permutation reads only the lowest 4 bits.
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
  static constexpr int row_vectors = 4;          // of columns, in a product of one row
  static constexpr Index prefetch_bytes = 4096;  // measured: 6 % more weights per second

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
  HEED_KERNEL static void row(const ProductTile<float>& tile, const Int16Rows& a,
                              const QuantizedPanel& panel) {
    constexpr int vectors = row_vectors, in_word = pairs_in_word(Codes);
    for (Index lane = 0; lane < tile.columns; lane += vectors * S::width) {
      const std::uint8_t* block = panel.blocks;
      V totals[1][vectors], scale[vectors], least[vectors];
      HEED_UNROLL for (int j = 0; j < vectors; ++j) totals[0][j] = S::broadcast(0);
      for (Index i = 0; i < tile.depth / terms; ++i) {
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
        block += QuantizedPanel::block_bytes(Codes);
      }
      ProductTable<float>::template finish<1, vectors>(tile, 0, lane, totals);
    }
  }

  /// Unpacks the codes of a panel, once for many rows.
  template <QuantizedCodes Codes>
  HEED_KERNEL static void unpack_as(const std::uint8_t* from, Index depth, UnpackedBlock* to) {
    constexpr int in_word = pairs_in_word(Codes);
    for (; depth > 0; depth -= terms, ++to) {
      for (Index lane = 0; lane < panel_columns; lane += S::width) {
        S::store(to->scale + lane, from_halves(from + 2 * lane));
        if constexpr (has_least(Codes)) {
          S::store(to->least + lane, from_halves(from + 2 * (panel_columns + lane)));
        }
        const std::uint8_t* words = from + (has_least(Codes) ? 4 : 2) * panel_columns + 4 * lane;
        for (Index p = 0; p < pairs; p += in_word) {
          const auto held = load<Words>(words);
          HEED_UNROLL for (int k = 0; k < in_word; ++k) {
            const Words pair = pair_of<Codes>(held, k);
            __builtin_memcpy(to->pairs + (p + k) * panel_columns + lane, &pair, sizeof(pair));
          }
          words += 4 * panel_columns;
        }
      }
      from += QuantizedPanel::block_bytes(Codes);
    }
  }

  template <bool Least, int Rows, int Vectors>
  HEED_KERNEL static void part(const ProductTile<float>& tile, const Int16Rows& a,
                               const UnpackedBlock* block, QuantizedCodes codes, Index row,
                               Index lane) {
    V totals[Rows][Vectors], scale[Vectors], least[Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) totals[r][j] = S::broadcast(0);
    }
    const std::int32_t* pair = a.pairs + row * a.pair_stride;
    const Int16Rows::Block* of_row = a.blocks + row * a.block_stride;
    for (Index i = 0; i < tile.depth / terms; ++i, ++block, ++of_row) {
      Words sums[Rows][Vectors];
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          sums[r][j] = start(codes, of_row[r * a.block_stride].total);
        }
      }
      const std::int32_t* codes_of = block->pairs + lane;
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
    ProductTable<float>::template finish<Rows, Vectors>(tile, row, lane, totals);
  }

  template <bool Least>
  HEED_SIMD static void rows(const ProductTile<float>& tile, const Int16Rows& a,
                             const UnpackedBlock* blocks, QuantizedCodes codes) {
    constexpr int vectors = HEED_SIMD_VECTORS;
    for (Index lane = 0; lane < tile.columns; lane += vectors * S::width) {
      Index row = 0;
      for (; row + product_rows <= tile.rows; row += product_rows) {
        part<Least, static_cast<int>(product_rows), vectors>(tile, a, blocks, codes, row, lane);
      }
      for (; row + 2 <= tile.rows; row += 2) {
        part<Least, 2, vectors>(tile, a, blocks, codes, row, lane);
      }
      if (row < tile.rows) part<Least, 1, vectors>(tile, a, blocks, codes, row, lane);
    }
  }

  static void int16_row(const ProductTile<float>& tile, const Int16Rows& a,
                        const QuantizedPanel& panel) {
    switch (panel.codes) {
      case QuantizedCodes::nibbles:
        return row<QuantizedCodes::nibbles>(tile, a, panel);
      case QuantizedCodes::signed_nibbles:
        return row<QuantizedCodes::signed_nibbles>(tile, a, panel);
      case QuantizedCodes::bytes:
        return row<QuantizedCodes::bytes>(tile, a, panel);
    }
  }
  static void unpack(const QuantizedPanel& panel, Index depth, UnpackedBlock* to) {
    switch (panel.codes) {
      case QuantizedCodes::nibbles:
        return unpack_as<QuantizedCodes::nibbles>(panel.blocks, depth, to);
      case QuantizedCodes::signed_nibbles:
        return unpack_as<QuantizedCodes::signed_nibbles>(panel.blocks, depth, to);
      case QuantizedCodes::bytes:
        return unpack_as<QuantizedCodes::bytes>(panel.blocks, depth, to);
    }
  }
  static void int16_tile(const ProductTile<float>& tile, const Int16Rows& a,
                         const UnpackedBlock* blocks, QuantizedCodes codes) {
    return has_least(codes) ? rows<true>(tile, a, blocks, codes)
                            : rows<false>(tile, a, blocks, codes);
  }
};

/// The set's product of int16 rows behind pointers.
template <class T, bool Vnni = false>
const Int16Kernels<T>& int16_table() {
  using K = Int16Product<Vnni>;
  static constexpr Int16Kernels<T> entries{K::round_row, K::unpack, K::int16_tile, K::int16_row};
  return entries;
}
