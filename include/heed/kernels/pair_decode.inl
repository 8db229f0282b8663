// SPDX-License-Identifier: MIT
// The counterpart of attend_keys.inl for bfloat16 pairs: a few queries over a block of keys, with
// keys in the lanes, then columns of values. Included by part.inl, after pairs.inl.

template <class T>
struct PairDecodeTable {
  using S = Lanes<T>;
  using P = Pairs<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr Index lanes = vectors * S::width;

  template <int Rows, int Vectors>
  HEED_KERNEL static void score_rows(const PairRows<T>& rows, Index row, Index key) {
    const Index tile = key / lanes * lanes, within = key % lanes;
    typename S::V scores[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) scores[r][j] = S::broadcast(0);
    }
    multiply_pairs<P, Rows, Vectors>(rows.rows + row * 2 * rows.depth, 2 * rows.depth, 2,
                                     rows.packed + tile * 2 * rows.depth + 2 * within, 2 * lanes,
                                     rows.depth, scores);
    T* to = rows.scores + tile * rows.count + row * lanes + within;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        S::store(to + r * lanes + j * S::width, scores[r][j]);
      }
    }
  }
  template <int Vectors>
  HEED_SIMD static void score_lanes(const PairRows<T>& rows, Index key) {
    for_each_tile<6>(
        rows.count, [&](auto some, Index row) __attribute__((always_inline)) {
          score_rows<some, Vectors>(rows, row, key);
        });
  }
  HEED_SIMD static void score(const PairKeys& keys, const PairRows<T>& rows) {
    PairTable<T>::pack(keys.keys, keys.count, rows.head_dim, rows.packed);
    Index key = 0;
    for (; key + lanes <= keys.count; key += lanes) score_lanes<vectors>(rows, key);
    for (; key < keys.count; key += S::width) score_lanes<1>(rows, key);
  }

  HEED_SIMD static bool seen(const PairRows<T>& rows, Index row, Index key) {
    return rows.visible == nullptr || (rows.visible[2 * row + (key >> 6)] >> (key & 63) & 1) != 0;
  }
  HEED_SIMD static Index score_at(const PairRows<T>& rows, Index row, Index key) {
    return (key / lanes * rows.count + row) * lanes + key % lanes;
  }

  /// The probabilities of a row relative to `maximum`, and their sum, key by key.
  HEED_KERNEL static T exponentiate_row(Index count, const PairRows<T>& rows, Index row,
                                        T maximum) {
    std::uint16_t* out = rows.probabilities + row * row_keys;
    const auto base = PairTask<T, 1>::base_of(S::broadcast(maximum));
    T weights[row_keys];
    for (Index key = 0; key < count; key += S::width) {
      auto weight = bfloat16_weight<S>(
          S::fma(S::load(rows.scores + score_at(rows, row, key)), S::broadcast(rows.factor), base));
      if (rows.visible) {
        const auto bits = rows.visible[2 * row + (key >> 6)] >> (key & 63);
        weight = S::select(S::lanes(bits), weight, S::broadcast(0));
      }
      S::store(weights + key, weight);
    }
    T total = 0;
    for (Index key = 0; key < count; ++key) {
      total += weights[key];
      out[key] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, weights[key]) >> 16);
    }
    if (count % 2 != 0) out[count] = 0;
    return total;
  }

  /// The softmax of one row.
  HEED_SIMD static void exponentiate(Index count, const PairRows<T>& rows, Index row) {
    T total = exponentiate_row(count, rows, row, rows.maximum[row]);
    if (!(total > lazy_limit<T>)) {
      rows.sum[row] += total;
      return;
    }
    T found = LaneTypes<T>::lowest;
    for (Index key = 0; key < count; ++key) {
      const T x = rows.scores[score_at(rows, row, key)] * rows.factor;
      if (seen(rows, row, key) && !(found > x)) found = x;
    }
    T maximum[S::width];
    S::store(maximum, pair_maximum<S>(S::broadcast(rows.maximum[row]), S::broadcast(found)));
    const auto factor = move_maximum<S>(rows, row, maximum[0]);
    total = exponentiate_row(count, rows, row, maximum[0]);
    rows.sum[row] = rescaled_sum<S>(rows.sum[row], factor, total);
  }

  /// output += probabilities · values for some rows and columns.
  template <int Rows, int Vectors>
  HEED_KERNEL static void add_rows(const PairKeys& keys, const PairRows<T>& rows, Index row,
                                   Index d) {
    T* out = rows.output + row * rows.output_stride + d;
    typename S::V sums[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        sums[r][j] = S::load(out + r * rows.output_stride + j * S::width);
      }
    }
    multiply_pairs<P, Rows, Vectors>(rows.probabilities + row * row_keys, row_keys, 2,
                                     keys.values + 2 * d, 2 * rows.value_dim, (keys.count + 1) / 2,
                                     sums);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        S::store(out + r * rows.output_stride + j * S::width, sums[r][j]);
      }
    }
  }
  template <int Vectors>
  HEED_SIMD static void add_columns(const PairKeys& keys, const PairRows<T>& rows, Index d) {
    Index row = 0;
    for (; row + 6 <= rows.count; row += 6) add_rows<6, Vectors>(keys, rows, row, d);
    for (; row + 2 <= rows.count; row += 2) add_rows<2, Vectors>(keys, rows, row, d);
    if (row < rows.count) add_rows<1, Vectors>(keys, rows, row, d);
  }

  /// Like add_pairs_guarded.
  HEED_KERNEL static void add_guarded(const PairKeys& keys, const PairRows<T>& rows) {
    for (Index row = 0; row < rows.count; ++row) {
      for (Index d = 0; d < rows.value_dim; d += S::width) {
        T* at = rows.output + row * rows.output_stride + d;
        auto sum = S::load(at);
        for (Index key = 0; key < keys.count; key += 2) {
          const bool low = seen(rows, row, key);
          const bool high = key + 1 < keys.count && seen(rows, row, key + 1);
          const std::int32_t halves = (low ? 0xffff : 0) | (high ? ~0xffff : 0);
          const auto values = P::load(keys.values + key * rows.value_dim + 2 * d) & halves;
          sum = P::add_products(P::spread(rows.probabilities + row * row_keys + key), values, sum);
        }
        S::store(at, sum);
      }
    }
  }

  HEED_KERNEL static void decode(const PairKeys& keys, const PairRows<T>& rows) {
    score(keys, rows);
    for (Index row = 0; row < rows.count; ++row) exponentiate(keys.count, rows, row);
    if (keys.guard_values && rows.visible != nullptr) return add_guarded(keys, rows);
    Index d = 0;
    for (; d + lanes <= rows.value_dim; d += lanes) add_columns<vectors>(keys, rows, d);
    for (; d < rows.value_dim; d += S::width) add_columns<1>(keys, rows, d);
  }
};

template <class T>
const PairKernels<T>* pair_table() {
  using K = PairTable<T>;
  static constexpr PairKernels<T> entries{2,         1,         K::pack,
                                          K::zip,    K::zip,    K::all_finite,
                                          K::narrow, K::attend, PairDecodeTable<T>::decode};
  return &entries;
}
