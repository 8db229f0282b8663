// SPDX-License-Identifier: MIT
// Decoding with vectors of 32 bytes: keys are transposed from half vectors, and the memory is asked
// for ahead in the order in which it lies. Included by part.inl, before attend_keys.inl, whose
// kernels for other sets these stand in for, with the same chains of additions.

/// 16 bytes of `low` and 16 bytes of `high` in one vector, which saves a transpose the exchange of
/// the halves of two vectors.
template <class S>
HEED_SIMD typename S::V load_halves(const typename S::Scalar* low, const typename S::Scalar* high) {
  using T = typename S::Scalar;
  typedef T Half __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
  const Half a = *reinterpret_cast<const Half*>(low), b = *reinterpret_cast<const Half*>(high);
  if constexpr (sizeof(T) == 4) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  } else {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3);
  }
}

template <class T>
struct HalvesScores {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr int lanes = vectors * S::width;  // keys in a tile
  static constexpr int block = block_lanes<S>;      // columns at a time

  /// Columns of one vector of keys: `block` rows at `low`, and as many at `high`.
  HEED_SIMD static void load_columns(const T* low, const T* high, Index stride,
                                     typename S::V (&columns)[block]) {
    HEED_UNROLL for (int i = 0; i < block; ++i) {
      columns[i] = load_halves<S>(low + i * stride, high + i * stride);
    }
    transpose_blocks<S>(columns);
  }

  /// scores += rows · columns for the `block` columns from `d` on of the tile whose keys are at
  /// `from`, which are stored in `packed` if more rows follow.
  template <int Rows, bool Keep>
  HEED_SIMD static void add_columns(const T* const (&from)[2 * vectors], Index stride,
                                    const QueryRows<T>& rows, Index d, T* packed,
                                    typename S::V (&scores)[Rows][vectors]) {
    // Four rows leave registers for the columns of one vector of keys at a time.
    constexpr int together = Rows > 3 ? 1 : vectors;
    const T* row = rows.rows + d;
    HEED_UNROLL for (int v = 0; v < vectors; v += together) {
      typename S::V columns[together][block];
      HEED_UNROLL for (int j = 0; j < together; ++j) {
        load_columns(from[2 * (v + j)], from[2 * (v + j) + 1], stride, columns[j]);
      }
      asm("" : "+r"(row));
      HEED_UNROLL for (int i = 0; i < block; ++i) {
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          const auto number = S::broadcast(row[r * rows.head_dim + i]);
          HEED_UNROLL for (int j = 0; j < together; ++j) {
            scores[r][v + j] = S::fma(number, columns[j][i], scores[r][v + j]);
          }
        }
        HEED_UNROLL for (int j = 0; j < together; ++j) {
          if (Keep) S::store(packed + (d + i) * lanes + (v + j) * S::width, columns[j][i]);
        }
      }
    }
  }

  /// The columns from `d` on, fewer than a block, of the tile of keys at `first`.
  template <int Rows>
  HEED_SIMD static void score_last(const T* first, Index stride, const QueryRows<T>& rows, Index d,
                                   T* packed, typename S::V (&scores)[Rows][vectors]) {
    const Index head_dim = rows.head_dim;
    for (int v = 0; v < vectors; ++v) {
      pack_lanes<S>(first + v * S::width * stride + d, stride, 1, S::width, head_dim - d, 1,
                    packed + d * lanes + v * S::width, lanes);
    }
    for (; d < head_dim; ++d) {
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        HEED_UNROLL for (int v = 0; v < vectors; ++v) {
          scores[r][v] = S::fma(S::broadcast(rows.rows[r * head_dim + d]),
                                S::load(packed + d * lanes + v * S::width), scores[r][v]);
        }
      }
    }
  }

  /// DecodeScores::score_transposed for a whole tile of keys. One chain of multiply-adds waits four
  /// cycles for each of them, so two vectors of keys go side by side.
  template <int Rows, bool Keep>
  HEED_KERNEL static void score(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key,
                                LinesAhead ahead) {
    const Index stride = keys.keys.row_stride, head_dim = rows.head_dim;
    const T* first = keys.keys.data + key * stride;
    const T* from[2 * vectors];
    HEED_UNROLL for (int i = 0; i < 2 * vectors; ++i) from[i] = first + i * block * stride;
    typename S::V scores[Rows][vectors] = {};
    T* const packed = rows.packed + key * head_dim;
    Index d = 0;
    for (; d + block <= head_dim; d += block) {
      // The compiler would keep an address for each of the sixteen rows, most of them in memory.
      HEED_UNROLL for (int i = 0; i < 2 * vectors; ++i) asm("" : "+r"(from[i]));
      HEED_UNROLL for (int line = 0; line < lanes * 16 / 64; ++line) ahead.fetch_line();
      add_columns<Rows, Keep>(from, stride, rows, d, packed, scores);
      HEED_UNROLL for (int i = 0; i < 2 * vectors; ++i) from[i] += block;
    }
    if (d < head_dim) score_last<Rows>(first, stride, rows, d, packed, scores);
    T* to = rows.scores + key * rows.count;
    store_sums<S>(scores, to, lanes);
  }

  /// The scores of a whole tile of keys with the first rows, up to decoded_at_once; in header-only
  /// programs with one row, the only one there.
  HEED_SIMD static void score_tile(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key) {
    const auto ahead = lines_after(keys, rows, key, lanes);
    if (rows.count == 1) return score<1, false>(keys, rows, key, ahead);
#if HEED_SIMD_ALL_KERNELS
    if (rows.count == 2) return score<2, false>(keys, rows, key, ahead);
    if (rows.count == 3) return score<3, false>(keys, rows, key, ahead);
    if (rows.count == 4) return score<4, false>(keys, rows, key, ahead);
    score<4, true>(keys, rows, key, ahead);
#endif
  }
};

template <class T>
struct HalvesValues {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  /// Number of keys whose values are added to all rows before the next ones: they stay in the
  /// first-level cache, beside the next ones.
  static constexpr Index value_tile = 16;
  // To save compile time, header-only programs have the kernels of one row and of four alone.
  static constexpr bool every_shape = HEED_SIMD_ALL_KERNELS;
  static constexpr int line = 64 / static_cast<int>(sizeof(T));  // columns in a line

  /// DecodeValues::add_rows, for rows that there are.
  template <int Rows, int Vectors>
  HEED_KERNEL static void add_rows(const QueryRows<T>& rows, Index row, const MatrixRef<T>& values,
                                   Index key, Index end, Index d, LinesAhead& lines) {
    const T* weights[Rows];
    T* out[Rows];
    typename S::V sums[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index which = row + r < rows.count ? row + r : rows.count - 1;
      weights[r] = rows.probabilities + which * row_keys;
      out[r] = rows.output + which * rows.output_stride + d;
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::load(out[r] + j * S::width);
    }
    const Index stride = values.row_stride;
    const T* at = values.data + key * stride + d;
    LinesAhead ahead = lines;
    for (; key < end; ++key, at += stride) {
      typename S::V columns[Vectors];
      if (row == 0) {
        HEED_UNROLL for (int j = 0; j < Vectors * S::width; j += line) ahead.fetch_line();
      }
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) columns[j] = S::load(at + j * S::width);
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        const auto weight = S::broadcast(weights[r][key]);
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          sums[r][j] = S::fma(weight, columns[j], sums[r][j]);
        }
      }
    }
    lines = ahead;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) S::store(out[r] + j * S::width, sums[r][j]);
    }
  }

  /// add_rows for all rows and `Vectors` vectors of columns.
  template <int Vectors>
  HEED_SIMD static void add_columns(const QueryRows<T>& rows, const MatrixRef<T>& values, Index key,
                                    Index end, Index d, LinesAhead& lines) {
    Index row = 0;
    if constexpr (every_shape) {
      for (; row + 6 <= rows.count; row += 6) {
        add_rows<6, Vectors>(rows, row, values, key, end, d, lines);
      }
    }
    for (; row + (every_shape ? 2 : 0) < rows.count; row += 4) {
      add_rows<4, Vectors>(rows, row, values, key, end, d, lines);
    }
    if constexpr (every_shape) {
      if (row < rows.count) add_rows<2, Vectors>(rows, row, values, key, end, d, lines);
    }
  }

  /// output += probabilities · values, in whole vectors of columns; returns how many.
  HEED_SIMD static Index add(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    const auto& values = keys.values;
    constexpr Index lanes = vectors * S::width;
    const Index whole = rows.value_dim / lanes * lanes;
    // Many rows load and store their sums once for each tile.
    const Index tile = rows.count > 4 ? 2 * value_tile : value_tile;
    for (Index key = 0; key < keys.count; key += tile) {
      const Index end = key + tile < keys.count ? key + tile : keys.count;
      auto ahead = lines_during_values(keys, rows, key, tile);
      Index d = 0;
      for (; rows.count == 1 && d + 4 * lanes <= whole; d += 4 * lanes) {
        add_rows<1, 4 * vectors>(rows, 0, values, key, end, d, ahead);
      }
      if constexpr (every_shape) {
        for (; rows.count == 2 && d + 2 * lanes <= whole; d += 2 * lanes) {
          add_rows<2, 2 * vectors>(rows, 0, values, key, end, d, ahead);
        }
      }
      for (; d < whole; d += lanes) add_columns<vectors>(rows, values, key, end, d, ahead);
    }
    return whole;
  }
};
