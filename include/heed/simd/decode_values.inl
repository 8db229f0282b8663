// SPDX-License-Identifier: MIT
// Outputs of a few queries over a block of values, lanes being columns of values. Included by
// part.inl, after decode_scores.inl.

template <class T>
struct DecodeValues {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr Index lanes = vectors * S::width;
  // Tiles of one vector where there are kernels for them.
  static constexpr int narrow = vectors == 4 ? 1 : vectors;
  // Code is compile time: header-only programs have no kernel of one row.
  static constexpr bool one_alone = HEED_SIMD_ALL_KERNELS;
  /// Keys whose values are added to all rows before the next ones: they stay in the first cache.
  static constexpr Index value_tile = 16;

  /// output[row] += Σ_key p · value for some rows and columns and the keys [key, end).
  template <int Rows, int Vectors>
  HEED_KERNEL static void add_rows(const QueryRows<T>& rows, Index row, const T* values,
                                   Index stride, Index key, Index end, Index d,
                                   std::uintptr_t ahead) {
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
        if (row == 0) fetch(at + j * S::width, ahead);
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
  template <int Vectors>
  HEED_SIMD static void add_columns(const QueryRows<T>& rows, const T* values, Index stride,
                                    Index key, Index end, Index d, std::uintptr_t ahead) {
    Index row = 0;
    for (; row + 1 < rows.count; row += decoded_at_once) {
      add_rows<decoded_at_once, Vectors>(rows, row, values, stride, key, end, d, ahead);
    }
    if (row < rows.count) {
      add_rows<one_alone && Vectors == vectors ? 1 : decoded_at_once, Vectors>(
          rows, row, values, stride, key, end, d, ahead);
    }
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

  HEED_KERNEL static void add(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    if (keys.guard_values) return add_guarded(keys, rows);
    const auto& values = keys.values;
    constexpr Index narrow_lanes = narrow * S::width;
    const Index whole = rows.value_dim / narrow_lanes * narrow_lanes;
    for (Index key = 0; key < keys.count; key += value_tile) {
      const Index end = key + value_tile < keys.count ? key + value_tile : keys.count;
      const T* at = values.data + key * values.row_stride;
      const T* next = end < keys.count ? at + value_tile * values.row_stride : rows.next_keys;
      const std::uintptr_t ahead = next ? distance(at, next) : 0;
      Index d = 0;
      for (; d + lanes <= whole; d += lanes) {
        add_columns<vectors>(rows, values.data + d, values.row_stride, key, end, d, ahead);
      }
      for (; d < whole; d += narrow_lanes) {
        add_columns<narrow>(rows, values.data + d, values.row_stride, key, end, d, ahead);
      }
    }
    if (whole == rows.value_dim) return;
    fill_tail(keys, rows, whole);
    add_columns<narrow>(rows, rows.tail, narrow_lanes, 0, keys.count, whole, 0);
  }
};
