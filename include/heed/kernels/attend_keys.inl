// SPDX-License-Identifier: MIT
// Scores of a few queries over a block of keys, with keys in the lanes. Included by part.inl.

/// Number of query rows that meet a group of keys or values at a time.
inline constexpr int decoded_at_once = 4;

/// The distance in bytes between two addresses, for `fetch`. As integers, since the pointers may
/// belong to different arrays.
template <class T>
HEED_SIMD std::uintptr_t distance(const T* from, const T* to) {
  return reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
}
/// Prefetches the line at the place of `at`, one tile of keys later, into the second-level cache
/// or, if Near, the first; see prefetches_near.
template <bool Near, class T>
HEED_SIMD void prefetch(const T* at, std::uintptr_t offset) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(at) + offset;
  const auto* there = reinterpret_cast<const void*>(address);  // NOLINT: it may end beyond
  __builtin_prefetch(there, 0, Near ? 3 : 2);
}
/// Calls run(std::bool_constant<Near>()); the processors that prefetch near have these vectors.
template <class T, class Run>
HEED_SIMD void with_near(const QueryRows<T>& rows, const Run& run) {
  if constexpr (HEED_SIMD_BYTES == 64) {
    if (rows.near) return run(std::true_type());
  }
  run(std::false_type());
}

template <class T>
struct DecodeScores {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr Index lanes = vectors * S::width;
  // Tiles of one vector, where such kernels exist.
  static constexpr int narrow = vectors == 4 ? 1 : vectors;
  // To save compile time, header-only programs transpose the keys of any rows on the fastest set
  // only, and those of one row with AVX2.
  static constexpr bool transposes_keys =
      HEED_SIMD_BYTES == 64 || (HEED_SIMD_ALL_KERNELS && tile_rows > 2);

  /// Scores of the first `Rows` rows over one vector of keys. The keys are transposed in registers,
  /// width × width numbers at a time, and kept in rows.packed if more rows follow.
  template <int Rows, bool Near>
  HEED_KERNEL static void score_transposed(const KeyBlock<T>& keys, const QueryRows<T>& rows,
                                           Index key, std::uintptr_t offset) {
    const T* from[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      from[i] = row_or_last(keys.keys.data, keys.keys.row_stride, keys.count, key + i);
    }
    const T* row[Rows];
    typename S::V scores[Rows];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      row[r] = row_or_last(rows.rows, rows.head_dim, rows.count, r);
      scores[r] = S::broadcast(0);
    }
    T* packed = rows.packed + key / lanes * lanes * rows.head_dim + key % lanes;
    Index d = 0;
    for (; d + S::width <= rows.head_dim; d += S::width) {
      typename S::V transposed[S::width];
      HEED_UNROLL for (int i = 0; i < S::width; ++i) transposed[i] = S::load(from[i] + d);
      transpose<S>(transposed);
      HEED_UNROLL for (int i = 0; i < S::width; ++i) {
        prefetch<Near>(from[i] + d, offset);
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          scores[r] = S::fma(S::broadcast(row[r][d + i]), transposed[i], scores[r]);
        }
      }
      if (rows.count <= Rows) continue;
      HEED_UNROLL for (int i = 0; i < S::width; ++i)
          S::store(packed + (d + i) * lanes, transposed[i]);
    }
    if (d < rows.head_dim) {
      pack_lanes<S>(from[0] + d, keys.keys.row_stride, 1, keys.count - key, rows.head_dim - d, 1,
                    packed + d * lanes, lanes);
    }
    for (; d < rows.head_dim; ++d) {
      const auto transposed = S::load(packed + d * lanes);
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        scores[r] = S::fma(S::broadcast(row[r][d]), transposed, scores[r]);
      }
    }
    T* to = rows.scores + key / lanes * lanes * rows.count + key % lanes;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      if (r < rows.count) S::store(to + r * lanes, scores[r]);
    }
  }

  /// The task with keys and queries swapped: the scores of the rows from `row` on over `narrow`
  /// vectors of packed keys.
  HEED_SIMD static TileTask<S, narrow> packed_task(const KeyBlock<T>& keys,
                                                   const QueryRows<T>& rows, Index row, Index key) {
    const Index tile = key / lanes * lanes, within = key % lanes;
    KeyBlock<T> queries;
    queries.keys = {rows.rows + row * rows.head_dim, rows.head_dim, 1};
    queries.count = rows.count - row;
    queries.score_mod = keys.score_mod;
    const T* bias = nullptr;
    if (keys.score_mod && keys.score_mod->bias) {
      bias = keys.score_mod->bias + row * keys.score_mod->bias_row + key;
    }
    return {queries,
            rows.packed + tile * rows.head_dim + within,
            rows.scores + tile * rows.count + row * lanes + within,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            bias,
            rows.head_dim,
            0,
            0,
            false};
  }

  /// The scores of a whole tile of `narrow` vectors, from keys read in place.
  HEED_SIMD static void score_lying(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key) {
    const auto& lying = keys.keys;
    Index from = key;
#if HEED_SIMD_BYTES == 32
    if (key + narrow * S::width <= keys.count) {
      HalvesScores<T>::score_tile(keys, rows, key);
      from += narrow * S::width;
    }
#endif
    for (; from < key + narrow * S::width && from < keys.count; from += S::width) {
      const T* at = lying.data + from * lying.row_stride;
      const std::uintptr_t offset = from + S::width < keys.count
                                        ? distance(at, at + S::width * lying.row_stride)
                                        : distance(at, keys.values.data);
      with_near(
          rows, [&](auto near) __attribute__((always_inline)) {
            if (HEED_SIMD_ALL_KERNELS && rows.count == 1) {
              score_transposed<HEED_SIMD_ALL_KERNELS ? 1 : decoded_at_once, near>(keys, rows, from,
                                                                                  offset);
            } else {
              score_transposed<decoded_at_once, near>(keys, rows, from, offset);
            }
          });
    }
    const Index done = rows.count < decoded_at_once ? rows.count : decoded_at_once;
    if (keys.score_mod) modify_scores(packed_task(keys, rows, 0, key), 0, done);
    if (done < rows.count) {
      score_block<S, narrow>(packed_task(keys, rows, done, key), nullptr);
    }
  }

  HEED_KERNEL static void scores(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    const auto& lying = keys.keys;
    Index key = 0;
    if constexpr (transposes_keys) {
      for (; lying.column_stride == 1 && key < keys.count; key += narrow * S::width) {
        score_lying(keys, rows, key);
      }
    }
#if HEED_SIMD_BYTES == 32 && !HEED_SIMD_ALL_KERNELS
    if (rows.count == 1 && lying.column_stride == 1) {
      for (; key + lanes <= keys.count; key += lanes) {
        HalvesScores<T>::score_tile(keys, rows, key);
        if (keys.score_mod) modify_scores(packed_task(keys, rows, 0, key), 0, 1);
      }
    }
#endif
    if (key >= keys.count) return;
    Table<T>::pack({lying.data + key * lying.row_stride, lying.row_stride, lying.column_stride},
                   keys.count - key, rows.head_dim, 1, rows.packed + key * rows.head_dim);
    for (; key < keys.count; key += narrow * S::width) {
      score_block<S, narrow>(packed_task(keys, rows, 0, key), nullptr);
    }
  }
};

// Outputs of a few queries over a block of values, with columns of values in the lanes.

template <class T>
struct DecodeValues {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr Index lanes = vectors * S::width;
  // Tiles of one vector, where such kernels exist.
  static constexpr int narrow = vectors == 4 ? 1 : vectors;
  // To save compile time, header-only programs have no kernel of one row.
  static constexpr bool one_alone = HEED_SIMD_ALL_KERNELS;
  /// Number of keys whose values are added to all rows before the next ones: they stay in the
  /// first-level cache.
  static constexpr Index value_tile = 16;

  /// output[row] += Σ_key p · value for some rows and columns and the keys [key, end).
  template <int Rows, int Vectors, bool Near>
  HEED_KERNEL static void add_rows(const QueryRows<T>& rows, Index row, const T* values,
                                   Index stride, Index key, Index end, Index d,
                                   std::uintptr_t offset) {
    const T* weights[Rows];
    T* out[Rows];
    typename S::V sums[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = row + r < rows.count ? row + r : rows.count - 1;
      weights[r] = rows.probabilities + at * row_keys;
      out[r] = rows.output + at * rows.output_stride + d;
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::load(out[r] + j * S::width);
    }
    for (; key < end; ++key) {
      const T* at = values + key * stride;
      typename S::V columns[Vectors];
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        columns[j] = S::load(at + j * S::width);
        if (row == 0) prefetch<Near>(at + j * S::width, offset);
      }
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        const auto weight = S::broadcast(weights[r][key]);
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          sums[r][j] = S::fma(weight, columns[j], sums[r][j]);
        }
      }
    }
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) S::store(out[r] + j * S::width, sums[r][j]);
    }
  }

  /// add_rows for all rows.
  template <int Vectors, bool Near = false>
  HEED_SIMD static void add_columns(const QueryRows<T>& rows, const T* values, Index stride,
                                    Index key, Index end, Index d, std::uintptr_t offset) {
    Index row = 0;
    for (; row + 1 < rows.count; row += decoded_at_once) {
      add_rows<decoded_at_once, Vectors, Near>(rows, row, values, stride, key, end, d, offset);
    }
    if (row < rows.count) {
      add_rows<one_alone && Vectors == vectors ? 1 : decoded_at_once, Vectors, Near>(
          rows, row, values, stride, key, end, d, offset);
    }
  }

  /// Copies the last columns, too few for a vector, to a vector padded with zeros.
  HEED_SIMD static void fill_tail(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index d) {
    for (Index key = 0; key < keys.count; ++key) {
      T* to = rows.tail + key * narrow * S::width;
      for (Index i = 0; i < narrow * S::width; ++i) {
        to[i] =
            d + i < rows.value_dim ? keys.values.data[key * keys.values.row_stride + d + i] : T{0};
      }
    }
  }

  /// Like add_values_guarded: a masked pair is not touched at all.
  HEED_KERNEL static void add_guarded(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    for (Index row = 0; row < rows.count; ++row) {
      for (Index d = 0; d < rows.value_dim; ++d) {
        auto sum = S::broadcast(rows.output[row * rows.output_stride + d]);
        for (Index key = 0; key < keys.count; ++key) {
          if ((rows.visible[2 * row + (key >> 6)] >> (key & 63) & 1) == 0) continue;
          sum = S::fma(S::broadcast(keys.values.data[key * keys.values.row_stride + d]),
                       S::broadcast(rows.probabilities[row * row_keys + key]), sum);
        }
        T spill[S::width];
        S::store(spill, sum);
        rows.output[row * rows.output_stride + d] = spill[0];
      }
    }
  }

  /// output += probabilities · values, in whole vectors of columns; returns how many.
  HEED_SIMD static Index add_whole(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    const auto& values = keys.values;
    constexpr Index narrow_lanes = narrow * S::width;
    const Index whole = rows.value_dim / narrow_lanes * narrow_lanes;
    for (Index key = 0; key < keys.count; key += value_tile) {
      const Index end = key + value_tile < keys.count ? key + value_tile : keys.count;
      const T* at = values.data + key * values.row_stride;
      const T* next = end < keys.count ? at + value_tile * values.row_stride : rows.next_keys;
      const std::uintptr_t offset = next ? distance(at, next) : 0;
      with_near(
          rows, [&](auto near) __attribute__((always_inline)) {
            Index d = 0;
            for (; d + lanes <= whole; d += lanes) {
              add_columns<vectors, near>(rows, values.data + d, values.row_stride, key, end, d,
                                         offset);
            }
            for (; d < whole; d += narrow_lanes) {
              add_columns<narrow, near>(rows, values.data + d, values.row_stride, key, end, d,
                                        offset);
            }
          });
    }
    return whole;
  }

  HEED_KERNEL static void add(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    if (keys.guard_values) return add_guarded(keys, rows);
    constexpr Index narrow_lanes = narrow * S::width;
#if HEED_SIMD_BYTES == 32
    const Index whole = HalvesValues<T>::add(keys, rows);
#else
    const Index whole = add_whole(keys, rows);
#endif
    if (whole == rows.value_dim) return;
    fill_tail(keys, rows, whole);
    add_columns<narrow>(rows, rows.tail, narrow_lanes, 0, keys.count, whole, 0);
  }
};

// A few queries over a block of keys, with keys in the lanes. The order of operations, which
// decides bits, is that of attend_queries.inl: a score is one chain of multiply-adds over head_dim,
// a sum one chain over the keys of a block, an output one chain over keys.

template <class T>
struct DecodeTable {
  using S = Lanes<T>;
  static constexpr Index lanes = DecodeScores<T>::lanes;

  HEED_SIMD static typename S::V score_at(const QueryRows<T>& rows, Index row, Index key) {
    return S::load(rows.scores + (key / lanes * rows.count + row) * lanes + key % lanes);
  }
  HEED_SIMD static typename S::M seen(const std::uint64_t* bits, Index key) {
    return S::lanes(bits[key >> 6] >> (key & 63));
  }

  /// The probabilities of a row relative to `maximum`.
  HEED_KERNEL static void exponentiate_row(const KeyBlock<T>& keys, const QueryRows<T>& rows,
                                           Index row, T maximum) {
    T* out = rows.probabilities + row * row_keys;
    for (Index key = 0; key < keys.count; key += S::width) {
      auto x = score_at(rows, row, key) - S::broadcast(maximum);
      if (rows.visible) {
        x = S::select(seen(rows.visible + 2 * row, key), x, S::broadcast(masked_exponent<T>));
      }
      S::store(out + key, exp2<S>(x));
    }
  }

  /// Sums the probabilities of `count` rows, key by key, side by side, since each addition waits
  /// for the one before it.
  HEED_SIMD static void sum_rows(const QueryRows<T>& rows, Index row, Index count, Index keys,
                                 T (&totals)[decoded_at_once]) {
    const T* at[decoded_at_once];
    HEED_UNROLL for (int r = 0; r < decoded_at_once; ++r) {
      at[r] = row_or_last(rows.probabilities + row * row_keys, row_keys, count, r);
      totals[r] = 0;
    }
    for (Index key = 0; key < keys; ++key) {
      HEED_UNROLL for (int r = 0; r < decoded_at_once; ++r) totals[r] += at[r][key];
    }
  }

  HEED_KERNEL static T largest_of_row(const KeyBlock<T>& keys, const QueryRows<T>& rows,
                                      Index row) {
    const auto lowest = S::broadcast(LaneTypes<T>::lowest);
    auto largest = lowest;
    for (Index key = 0; key < keys.count; key += S::width) {
      std::uint64_t bits = ~std::uint64_t{0};
      if (rows.visible) bits = rows.visible[2 * row + (key >> 6)] >> (key & 63);
      if (keys.count - key < S::width) bits &= ~(~std::uint64_t{0} << (keys.count - key));
      largest = S::max(largest, S::select(S::lanes(bits), score_at(rows, row, key), lowest));
    }
    T found[S::width];
    S::store(found, largest);
    for (const T x : found) {
      if (!(found[0] > x)) found[0] = x;  // like S::max: a NaN in the second operand stays
    }
    return found[0];
  }

  /// Moves the maximum of a row to that of this block.
  HEED_SIMD static void rescale_row(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                    T found) {
    const auto factor = move_maximum<S>(rows, row, found);
    T total[decoded_at_once];
    exponentiate_row(keys, rows, row, found);
    sum_rows(rows, row, 1, keys.count, total);
    rows.sum[row] = rescaled_sum<S>(rows.sum[row], factor, total[0]);
  }

  /// The softmax of some rows.
  HEED_KERNEL static void exponentiate(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                       Index count) {
    for (Index r = row; r < row + count; ++r) exponentiate_row(keys, rows, r, rows.maximum[r]);
    T totals[decoded_at_once];
    sum_rows(rows, row, count, keys.count, totals);
    for (Index r = row; r < row + count; ++r) {
      if (totals[r - row] > lazy_limit<T>) {
        rescale_row(keys, rows, r, largest_of_row(keys, rows, r));
      } else {
        rows.sum[r] += totals[r - row];
      }
      if (keys.score_mod && keys.score_mod->keep) drop(keys, rows, r);
    }
  }

  /// Dropout, after the sums.
  HEED_SIMD static void drop(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row) {
    T* out = rows.probabilities + row * row_keys;
    const std::uint64_t* keep = keys.score_mod->keep + 2 * row;
    for (Index key = 0; key < keys.count; key += S::width) {
      const auto x = S::load(out + key) * S::broadcast(keys.score_mod->keep_factor);
      S::store(out + key, S::select(seen(keep, key), x, S::broadcast(0)));
    }
  }

  HEED_KERNEL static void attend(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    constexpr Index step = decoded_at_once;
    for (Index row = 0; row < rows.count; row += step) {
      exponentiate(keys, rows, row, rows.count - row < step ? rows.count - row : step);
    }
    DecodeValues<T>::add(keys, rows);
  }
};

template <class T>
const DecodeKernels<T>& decode_table() {
#if HEED_SIMD_BYTES == 16 && defined(__x86_64__) && !HEED_SIMD_ALL_KERNELS
  // To save compile time, header-only programs on machines without AVX2 decode as they prefill.
  static constexpr DecodeKernels<T> entries{nullptr, nullptr};
#else
  static constexpr DecodeKernels<T> entries{DecodeScores<T>::scores, DecodeTable<T>::attend};
#endif
  return entries;
}
