// SPDX-License-Identifier: MIT
// Decoding with vectors of 32 bytes: keys are transposed from half vectors, and the memory is asked
// for ahead in the order in which it lies. Included by part.inl, before attend_keys.inl, whose
// kernels for other sets these stand in for, with the same chains of additions. A `Number` is T or
// std::uint16_t, the bits of a bfloat16, which is widened in registers: half the memory is read,
// and half as many vectors are transposed, of which each lane has two columns.

template <class T, class Number = T, int Vectors = HEED_SIMD_VECTORS>
struct HalvesScores {
  using S = Lanes<T>;
  static constexpr int vectors = Vectors;  // of keys at a time
  static constexpr int lanes = vectors * S::width;
  static constexpr int block = block_lanes<S>;  // numbers of T in 16 bytes of a row
  /// Columns in 16 bytes of a row, and in a lane.
  static constexpr int columns_at_once = 16 / static_cast<int>(sizeof(Number));
  static constexpr int columns_in_lane = columns_at_once / block;

  /// 16 bytes of the rows of one vector of keys: `block` rows at `low`, and as many at `high`.
  HEED_SIMD static void load_columns(const Number* low, const Number* high, Index stride,
                                     typename S::V (&columns)[block]) {
    HEED_UNROLL for (int i = 0; i < block; ++i) {
      columns[i] = load_halves<S>(low + i * stride, high + i * stride);
    }
    transpose_blocks<S>(columns);
  }
  /// One of the columns in lanes.
  HEED_SIMD static typename S::V column_of(typename S::V columns, int which) {
    if constexpr (columns_in_lane == 1) return columns;
    const auto bits = (typename S::Ints)columns;
    return (typename S::V)(which == 0 ? bits << 16 : bits & ~0xffff);
  }

  /// scores += rows · columns for 16 bytes of the keys that begin are at `from`, which are stored
  /// in `packed` if more rows follow.
  template <int Rows, bool Keep>
  HEED_SIMD static void add_columns(const Number* const (&from)[2 * vectors], Index stride,
                                    const T* row, Index head_dim, T* packed,
                                    typename S::V (&scores)[Rows][vectors]) {
    constexpr int together = vectors < 2 ? 1 : 2;
    HEED_UNROLL for (int v = 0; v < vectors; v += together) {
      typename S::V columns[together][block];
      HEED_UNROLL for (int j = 0; j < together; ++j) {
        load_columns(from[2 * (v + j)], from[2 * (v + j) + 1], stride, columns[j]);
      }
      // Opaque: the compiler would keep a distance for each of their numbers.
      const T* of_row[Rows];
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        of_row[r] = row + r * head_dim;
        asm("" : "+r"(of_row[r]));
      }
      HEED_UNROLL for (int i = 0; i < columns_at_once; ++i) {
        typename S::V column[together];
        HEED_UNROLL for (int j = 0; j < together; ++j) {
          column[j] = column_of(columns[j][i / columns_in_lane], i % columns_in_lane);
        }
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          const auto number = S::broadcast(of_row[r][i]);
          HEED_UNROLL for (int j = 0; j < together; ++j) {
            scores[r][v + j] = S::fma(number, column[j], scores[r][v + j]);
          }
        }
        HEED_UNROLL for (int j = 0; j < together; ++j) {
          if (Keep) S::store(packed + i * lanes + (v + j) * S::width, column[j]);
        }
      }
    }
  }

  /// The columns from `d` on, fewer than 16 bytes of a row have, of the keys at `first`.
  template <int Rows>
  HEED_SIMD static void score_rest(const T* first, Index stride, const QueryRows<T>& rows, Index d,
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

  /// The scores of `Rows` rows from `row` on over the keys at `first`, the `key`th of the
  /// block, like DecodeScores::score_transposed. One chain of multiply-adds waits four cycles for
  /// each of them, so two vectors of keys go side by side.
  template <int Rows, bool Keep>
  HEED_KERNEL static void score(const Number* first, Index stride, const QueryRows<T>& rows,
                                Index row, Index key, LinesAhead ahead) {
    const Index head_dim = rows.head_dim;
    const Number* from[2 * vectors];
    HEED_UNROLL for (int i = 0; i < 2 * vectors; ++i) from[i] = first + i * block * stride;
    typename S::V scores[Rows][vectors] = {};
    T* const packed = rows.packed + key * head_dim;
    const T* const query = rows.rows + row * head_dim;
    Index d = 0;
    for (; d + columns_at_once <= head_dim; d += columns_at_once) {
      // The compiler would keep an address for each of the sixteen rows, most of them in memory.
      HEED_UNROLL for (int i = 0; i < 2 * vectors; ++i) asm("" : "+r"(from[i]));
      HEED_UNROLL for (int line = 0; line < lanes * 16 / 64; ++line) ahead.fetch_line();
      add_columns<Rows, Keep>(from, stride, query + d, head_dim, packed + d * lanes, scores);
      HEED_UNROLL for (int i = 0; i < 2 * vectors; ++i) from[i] += columns_at_once;
    }
    if constexpr (columns_in_lane == 1) {
      if (d < head_dim) score_rest<Rows>(first, stride, rows, d, packed, scores);
    }
    store_sums<S>(scores, rows.scores + key * rows.count + row * lanes, lanes);
  }

  /// The scores of a single row over twice as many keys at a time, for as many steps as there are:
  /// four chains of multiply-adds do not wait, two do. Returns where they end. Rows of more than
  /// 256 bytes took 1.3 times as long from memory. To save compile time, not in header-only
  /// programs.
  HEED_SIMD static Index score_wide(const KeyBlock<Number>& keys, const QueryRows<T>& rows) {
    Index key = 0;
#if HEED_SIMD_ALL_KERNELS
    constexpr Index step = 2 * lanes, most_columns = 256 / Index{sizeof(Number)};
    if (rows.count > 1 || rows.head_dim > most_columns) return 0;
    const MatrixRef<Number>& from = keys.keys;
    for (; key + step <= keys.count; key += step) {
      HalvesScores<T, Number, 2 * Vectors>::template score<1, false>(
          from.data + key * from.row_stride, from.row_stride, rows, 0, key,
          lines_after(keys, rows, key, step));
    }
#else
    static_cast<void>(keys), static_cast<void>(rows);
#endif
    return key;
  }

  /// The scores of a whole step of keys with the first rows, up to decoded_at_once; in header-only
  /// programs with one row, the only one there.
  HEED_SIMD static void score_step(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key) {
    const auto ahead = lines_after(keys, rows, key, lanes);
    const Index stride = keys.keys.row_stride;
    const T* first = keys.keys.data + key * stride;
    if (rows.count == 1) return score<1, false>(first, stride, rows, 0, key, ahead);
#if HEED_SIMD_ALL_KERNELS
    if (rows.count == 2) return score<2, false>(first, stride, rows, 0, key, ahead);
    if (rows.count == 3) return score<3, false>(first, stride, rows, 0, key, ahead);
    if (rows.count == 4) return score<4, false>(first, stride, rows, 0, key, ahead);
    score<4, true>(first, stride, rows, 0, key, ahead);
#endif
  }

  /// The scores of all rows over the step of bfloat16 keys at `first`, four rows at a time.
  HEED_SIMD static void score_rows(const Number* first, Index stride, const QueryRows<T>& rows,
                                   Index key, LinesAhead ahead) {
    const auto nothing = LinesAhead::none(first);
    Index row = 0;
    for (; row + 4 <= rows.count; row += 4) {
      score<4, false>(first, stride, rows, row, key, row == 0 ? ahead : nothing);
    }
    if (row > 0) ahead = nothing;
#if HEED_SIMD_ALL_KERNELS
    if (row + 3 == rows.count) return score<3, false>(first, stride, rows, row, key, ahead);
    if (row + 2 == rows.count) return score<2, false>(first, stride, rows, row, key, ahead);
#endif
    for (; row < rows.count; ++row, ahead = nothing) {
      score<1, false>(first, stride, rows, row, key, ahead);
    }
  }
  /// The scores over whole steps of bfloat16 keys; returns where they end.
  HEED_SIMD static Index score_whole(const KeyBlock<Number>& keys, const QueryRows<T>& rows) {
    Index key = score_wide(keys, rows);
    for (; key + lanes <= keys.count; key += lanes) {
      score_rows(keys.keys.data + key * keys.keys.row_stride, keys.keys.row_stride, rows, key,
                 lines_after(keys, rows, key, lanes));
    }
    return key;
  }
};

template <class T, class Number = T>
struct HalvesValues {
  using S = Lanes<T>;
  /// Number of keys whose values are added to all rows before the next ones: they stay in the
  /// first-level cache, beside the next ones.
  static constexpr Index value_step = 16;
  // To save compile time, header-only programs have the kernels of one row and of four alone.
  static constexpr bool every_shape = HEED_SIMD_ALL_KERNELS;
  static constexpr Index line = numbers_in_line<Number>;

  /// DecodeValues::add_rows, for rows that there are.
  template <int Rows, int Vectors>
  HEED_KERNEL static void add_rows(const QueryRows<T>& rows, Index row,
                                   const MatrixRef<Number>& values, Index key, Index end, Index d,
                                   LinesAhead& lines) {
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
    const Number* at = values.data + key * stride + d;
    const bool prefetches = row == 0 && d % line == 0;
    LinesAhead ahead = lines;
    for (; key < end; ++key, at += stride) {
      typename S::V columns[Vectors];
      if (prefetches) {
        HEED_UNROLL for (Index j = 0; j < Vectors * S::width; j += line) ahead.fetch_line();
      }
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) columns[j] = load_wide<S>(at + j * S::width);
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
  HEED_SIMD static void add_columns(const QueryRows<T>& rows, const MatrixRef<Number>& values,
                                    Index key, Index end, Index d, LinesAhead& lines) {
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
  HEED_SIMD static Index add_whole(const KeyBlock<Number>& keys, const QueryRows<T>& rows) {
    const auto& values = keys.values;
    constexpr Index lanes = strip_stride<S>;
    const Index whole = rows.value_dim / lanes * lanes;
    // Many rows load and store their sums once for each step.
    const Index step = rows.count > 4 ? 2 * value_step : value_step;
    for (Index key = 0; key < keys.count; key += step) {
      const Index end = key + step < keys.count ? key + step : keys.count;
      auto ahead = lines_during_values(keys, rows, key, step);
      Index d = 0;
      for (; rows.count == 1 && d + 4 * lanes <= whole; d += 4 * lanes) {
        add_rows<1, 4 * HEED_SIMD_VECTORS>(rows, 0, values, key, end, d, ahead);
      }
      if constexpr (every_shape) {
        for (; rows.count == 2 && d + 2 * lanes <= whole; d += 2 * lanes) {
          add_rows<2, 2 * HEED_SIMD_VECTORS>(rows, 0, values, key, end, d, ahead);
        }
      }
      for (; d < whole; d += lanes)
        add_columns<HEED_SIMD_VECTORS>(rows, values, key, end, d, ahead);
    }
    return whole;
  }
};
