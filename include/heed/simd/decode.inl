// SPDX-License-Identifier: MIT
// A few queries over a block of keys, lanes being keys. Included by part.inl. What
// decides bits is what decides them in attend.inl: a score is one chain of multiply-adds over
// head_dim, a sum one chain over the keys of a block, an output one chain over keys.

template <class T>
struct DecodeTable {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr Index lanes = vectors * S::width;
  // Tiles of one vector where there are kernels for them.
  static constexpr int narrow = vectors == 4 ? 1 : vectors;

  /// Keys and queries change places: score_block computes rows of queries over lanes of keys.
  template <int Vectors>
  HEED_SIMD static void score_lanes(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key) {
    const Index tile = key / lanes * lanes, within = key % lanes;
    KeyBlock<T> queries;
    queries.keys = {rows.rows, rows.head_dim, 1};
    queries.count = rows.count;
    queries.change = keys.change;
    const T* bias = keys.change && keys.change->bias ? keys.change->bias + key : nullptr;
    T* scores = rows.scores + tile * rows.count + within;
    const TileTask<S, Vectors> task{queries,
                                    rows.packed + tile * rows.head_dim + within,
                                    scores,
                                    nullptr,
                                    nullptr,
                                    nullptr,
                                    nullptr,
                                    bias,
                                    rows.head_dim,
                                    0,
                                    0};
    score_block<S, Vectors>(task, nullptr);
  }

  /// Reads one number of every 64 bytes: a block's memory comes in one go, in order, which hardware
  /// looks ahead for. In pieces between computation it came at a third of the speed (measured).
  HEED_SIMD static void touch(const Strided<T>& matrix, Index rows, Index columns) {
    constexpr Index line = 64 / static_cast<Index>(sizeof(T));
    if (matrix.column_stride != 1) return;
    for (Index row = 0; row < rows; ++row) {
      const volatile T* at = matrix.data + row * matrix.row_stride;
      for (Index column = 0; column < columns; column += line) static_cast<void>(at[column]);
    }
  }

  HEED_KERNEL static void scores(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    if (rows.from_memory) {
      touch(keys.keys, keys.count, rows.head_dim);
      touch(keys.values, keys.count, rows.value_dim);
    }
    Table<T>::pack(keys.keys, keys.count, rows.head_dim, 1, rows.packed);
    Index key = 0;
    for (; key + lanes <= keys.count; key += lanes) score_lanes<vectors>(keys, rows, key);
    for (; key < keys.count; key += narrow * S::width) score_lanes<narrow>(keys, rows, key);
  }

  HEED_SIMD static typename S::V score_at(const QueryRows<T>& rows, Index row, Index key) {
    return S::load(rows.scores + (key / lanes * rows.count + row) * lanes + key % lanes);
  }
  HEED_SIMD static typename S::M seen(const std::uint64_t* bits, Index key) {
    return S::lanes(bits[key >> 6] >> (key & 63));
  }

  /// Probabilities of a row by `maximum`; their sum, key by key.
  HEED_KERNEL static T soften_row(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                  T maximum) {
    T* out = rows.probabilities + row * row_keys;
    for (Index key = 0; key < keys.count; key += S::width) {
      auto x = score_at(rows, row, key) - S::broadcast(maximum);
      if (rows.visible) {
        x = S::select(seen(rows.visible + 2 * row, key), x, S::broadcast(masked_exponent<T>));
      }
      S::store(out + key, exp2<S>(x));
    }
    T total = 0;
    for (Index key = 0; key < keys.count; ++key) total += out[key];
    if (keys.change && keys.change->keep) {
      const std::uint64_t* keep = keys.change->keep + 2 * row;
      for (Index key = 0; key < keys.count; key += S::width) {
        const auto x = S::load(out + key) * S::broadcast(keys.change->keep_factor);
        S::store(out + key, S::select(seen(keep, key), x, S::broadcast(0)));
      }
    }
    return total;
  }

  HEED_KERNEL static T largest_of_row(const KeyBlock<T>& keys, const QueryRows<T>& rows,
                                      Index row) {
    T largest = std::numeric_limits<T>::lowest();
    for (Index key = 0; key < keys.count; ++key) {
      if (rows.visible && (rows.visible[2 * row + (key >> 6)] >> (key & 63) & 1) == 0) continue;
      const T x = rows.scores[(key / lanes * rows.count + row) * lanes + key % lanes];
      if (!(largest > x)) largest = x;  // as S::max: a NaN in the second operand stays
    }
    return largest;
  }

  /// The softmax of one row; see rescale in attend.inl.
  HEED_SIMD static void soften(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row) {
    T total = soften_row(keys, rows, row, rows.maximum[row]);
    if (!(total > lazy_limit<T>)) {
      rows.sum[row] += total;
      return;
    }
    const T found = largest_of_row(keys, rows, row);
    T factor[S::width];
    S::store(factor, exp2<S>(S::broadcast(rows.maximum[row] - found)));
    rows.maximum[row] = found;
    total = soften_row(keys, rows, row, found);
    T sum[S::width];
    S::store(sum,
             S::fma(S::broadcast(rows.sum[row]), S::broadcast(factor[0]), S::broadcast(total)));
    rows.sum[row] = sum[0];
    T* output = rows.output + row * rows.output_stride;
    for (Index d = 0; d < rows.output_stride; d += S::width) {
      S::store(output + d, S::load(output + d) * S::broadcast(factor[0]));
    }
  }

  /// output[row] += Σ_key p · value for the columns [d, d + Vectors · width).
  template <int Vectors>
  HEED_SIMD static void add_columns(const QueryRows<T>& rows, const T* values, Index stride,
                                    Index count, Index d) {
    tile_products<S, Vectors>(rows.probabilities, row_keys, 1, values, stride, count,
                              rows.output + d, rows.output_stride, rows.count, true);
  }

  /// The last columns, too few for a vector, behind zeros.
  HEED_SIMD static void fill_tail(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index d) {
    for (Index key = 0; key < keys.count; ++key) {
      T* to = rows.tail + key * narrow * S::width;
      for (Index i = 0; i < narrow * S::width; ++i) {
        to[i] =
            d + i < rows.value_dim ? keys.values.data[key * keys.values.row_stride + d + i] : T{0};
      }
    }
  }

  /// As add_values_guarded: a masked pair is not touched at all.
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

  HEED_KERNEL static void attend(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    for (Index row = 0; row < rows.count; ++row) soften(keys, rows, row);
    if (keys.guard_values) return add_guarded(keys, rows);
    const auto& values = keys.values;
    constexpr Index narrow_lanes = narrow * S::width;
    Index d = 0;
    for (; d + lanes <= rows.value_dim; d += lanes) {
      add_columns<vectors>(rows, values.data + d, values.row_stride, keys.count, d);
    }
    for (; d + narrow_lanes <= rows.value_dim; d += narrow_lanes) {
      add_columns<narrow>(rows, values.data + d, values.row_stride, keys.count, d);
    }
    if (d == rows.value_dim) return;
    fill_tail(keys, rows, d);
    add_columns<narrow>(rows, rows.tail, narrow_lanes, keys.count, d);
  }

  HEED_KERNEL static void widen(const std::uint16_t* from, Index count, T* to) {
    Index i = 0;
#if HEED_SIMD_BYTES != 0
    if constexpr (sizeof(T) == 4) {
      typedef std::uint16_t Half
          __attribute__((vector_size(HEED_SIMD_BYTES / 2), aligned(2), may_alias));
      typedef std::uint32_t Whole __attribute__((vector_size(HEED_SIMD_BYTES)));
      for (; i + S::width <= count; i += S::width) {
        const auto half = *reinterpret_cast<const Half*>(from + i);
        S::store(to + i, (typename S::V)(__builtin_convertvector(half, Whole) << 16));
      }
    }
#endif
    for (; i < count; ++i) {
      to[i] = static_cast<T>(__builtin_bit_cast(float, std::uint32_t{from[i]} << 16));
    }
  }
};

template <class T>
const DecodeKernels<T>& decode_table() {
  using K = DecodeTable<T>;
  static constexpr DecodeKernels<T> entries{K::scores, K::attend, K::widen};
  return entries;
}
