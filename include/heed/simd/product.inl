// SPDX-License-Identifier: MIT
// The matrix product of layers, on the tile product. Included by part.inl.

template <class T>
struct ProductTable {
  using S = Lanes<T>;
  static constexpr int panel = static_cast<int>(panel_columns);
  // One row alone keeps the multiplier busy with more columns.
  static constexpr int single_row_vectors = panel / S::width < 8 ? panel / S::width : 8;

  HEED_KERNEL static void pack(Strided<T> b, Index depth, Index columns, T* packed) {
    Index column = 0;
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

  /// Adds the addend to sums and writes them out, as many columns as there are.
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

/// The product with quantized weights, which are read as they are stored.
struct QuantizedProduct {
  using S = Lanes<float>;
  using V = S::V;
  static constexpr int vectors = 4;

#if HEED_SIMD_BYTES == 0
  using Words = std::int32_t;
  using Shifted = std::uint32_t;
  HEED_SIMD static V numbers(Words codes) { return static_cast<float>(codes); }
#else
  using Words = S::M;
  typedef std::uint32_t Shifted __attribute__((vector_size(HEED_SIMD_BYTES)));
  HEED_SIMD static V numbers(Words codes) { return __builtin_convertvector(codes, V); }
#endif
  HEED_SIMD static Words words_at(const std::uint8_t* from) {
    Words words;
    __builtin_memcpy(&words, from, sizeof(words));
    return words;
  }
  /// Code `i` of each word as a number.
  template <bool Nibbles>
  HEED_SIMD static V code(Words words, int i) {
    if constexpr (Nibbles) return numbers((words >> (4 * i)) & 15);
    return numbers((Words)((Shifted)words << (24 - 8 * i)) >> 24);
  }

  /// Calls use(term, j, weights) for `vectors` vectors of columns from `lane`, terms in order.
  template <bool Nibbles, class Use>
  HEED_SIMD static void each_term(const std::uint8_t* block, Index lane, Index depth,
                                  const Use& use) {
    constexpr int in_word = Nibbles ? 8 : 4;
    for (Index first = 0; first < depth; first += QuantizedPanel::terms) {
      const auto* scales = reinterpret_cast<const float*>(block) + lane;
      const std::uint8_t* words = block + 4 * (2 * panel_columns + lane);
      V scale[vectors], least[vectors];
      HEED_UNROLL for (int j = 0; j < vectors; ++j) {
        scale[j] = S::load(scales + j * S::width);
        least[j] = S::load(scales + panel_columns + j * S::width);
      }
      for (Index term = first; term < first + QuantizedPanel::terms; term += in_word) {
        Words held[vectors];
        HEED_UNROLL for (int j = 0; j < vectors; ++j) {
          held[j] = words_at(words + 4 * j * S::width);
        }
        HEED_UNROLL for (int i = 0; i < in_word; ++i) {
          HEED_UNROLL for (int j = 0; j < vectors; ++j) {
            use(term + i, j, code<Nibbles>(held[j], i) * scale[j] + least[j]);
          }
        }
        words += 4 * panel_columns;
      }
      block += QuantizedPanel::block_bytes(Nibbles);
    }
  }

  template <bool Nibbles>
  HEED_KERNEL static void row(const ProductTile<float>& tile, const std::uint8_t* blocks) {
    for (Index lane = 0; lane < tile.columns; lane += vectors * S::width) {
      V sums[1][vectors];
      HEED_UNROLL for (int j = 0; j < vectors; ++j) sums[0][j] = S::broadcast(0);
      each_term<Nibbles>(
          blocks, lane,
          tile.depth, [&](Index term, int j, V weights) __attribute__((always_inline)) {
            sums[0][j] =
                S::fma(S::broadcast(tile.a.data[term * tile.a.column_stride]), weights, sums[0][j]);
          });
      ProductTable<float>::finish<1, vectors>(tile, 0, lane, sums);
    }
  }
  template <bool Nibbles>
  HEED_KERNEL static void unpack(const std::uint8_t* blocks, Index depth, float* packed) {
    for (Index lane = 0; lane < panel_columns; lane += vectors * S::width) {
      each_term<Nibbles>(
          blocks, lane, depth, [&](Index term, int j, V weights) __attribute__((always_inline)) {
            S::store(packed + term * panel_columns + lane + j * S::width, weights);
          });
    }
  }

  static void quantized_row(const ProductTile<float>& tile, const QuantizedPanel& panel) {
    panel.nibbles ? row<true>(tile, panel.blocks) : row<false>(tile, panel.blocks);
  }
  static void dequantize(const QuantizedPanel& panel, Index depth, float* packed) {
    panel.nibbles ? unpack<true>(panel.blocks, depth, packed)
                  : unpack<false>(panel.blocks, depth, packed);
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
