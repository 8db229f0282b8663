// SPDX-License-Identifier: MIT
// A few queries over a block of keys, lanes being keys. Included by part.inl, after
// decode_values.inl. What decides bits is what decides them in attend.inl: a score is one chain of
// multiply-adds over head_dim, a sum one chain over the keys of a block, an output one chain over
// keys.

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

  /// Probabilities of a row by `maximum`.
  HEED_KERNEL static void soften_row(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                     T maximum) {
    T* out = rows.probabilities + row * row_keys;
    for (Index key = 0; key < keys.count; key += S::width) {
      auto x = score_at(rows, row, key) - S::broadcast(maximum);
      if (rows.visible) {
        x = S::select(seen(rows.visible + 2 * row, key), x, S::broadcast(masked_exponent<T>));
      }
      S::store(out + key, exp2<S>(x));
    }
  }

  /// Sums of the probabilities of `count` rows, key by key, side by side: a sum waits for itself.
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
    const auto lowest = S::broadcast(std::numeric_limits<T>::lowest());
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
      if (!(found[0] > x)) found[0] = x;  // as S::max: a NaN in the second operand stays
    }
    return found[0];
  }

  /// Moves the maximum of a row to that of this block; see rescale in attend.inl.
  HEED_SIMD static void rescale_row(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                    T found) {
    T factor[S::width], sum[S::width], total[decoded_at_once];
    S::store(factor, exp2<S>(S::broadcast(rows.maximum[row] - found)));
    rows.maximum[row] = found;
    soften_row(keys, rows, row, found);
    sum_rows(rows, row, 1, keys.count, total);
    S::store(sum,
             S::fma(S::broadcast(rows.sum[row]), S::broadcast(factor[0]), S::broadcast(total[0])));
    rows.sum[row] = sum[0];
    T* output = rows.output + row * rows.output_stride;
    for (Index d = 0; d < rows.output_stride; d += S::width) {
      S::store(output + d, S::load(output + d) * S::broadcast(factor[0]));
    }
  }

  /// The softmax of some rows.
  HEED_KERNEL static void soften(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                 Index count) {
    for (Index r = row; r < row + count; ++r) soften_row(keys, rows, r, rows.maximum[r]);
    T totals[decoded_at_once];
    sum_rows(rows, row, count, keys.count, totals);
    for (Index r = row; r < row + count; ++r) {
      if (totals[r - row] > lazy_limit<T>) {
        rescale_row(keys, rows, r, largest_of_row(keys, rows, r));
      } else {
        rows.sum[r] += totals[r - row];
      }
      if (keys.change && keys.change->keep) drop(keys, rows, r);
    }
  }

  /// Dropout, after the sums.
  HEED_SIMD static void drop(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row) {
    T* out = rows.probabilities + row * row_keys;
    const std::uint64_t* keep = keys.change->keep + 2 * row;
    for (Index key = 0; key < keys.count; key += S::width) {
      const auto x = S::load(out + key) * S::broadcast(keys.change->keep_factor);
      S::store(out + key, S::select(seen(keep, key), x, S::broadcast(0)));
    }
  }

  HEED_KERNEL static void attend(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    constexpr Index step = decoded_at_once;
    for (Index row = 0; row < rows.count; row += step) {
      soften(keys, rows, row, rows.count - row < step ? rows.count - row : step);
    }
    DecodeValues<T>::add(keys, rows);
  }
};

template <class T>
const DecodeKernels<T>& decode_table() {
#if HEED_SIMD_BYTES == 16 && defined(__x86_64__) && !HEED_SIMD_ALL_KERNELS
  // Code is compile time: header-only programs on machines without AVX2 decode as they prefill.
  static constexpr DecodeKernels<T> entries{nullptr, nullptr};
#else
  static constexpr DecodeKernels<T> entries{DecodeScores<T>::scores, DecodeTable<T>::attend};
#endif
  return entries;
}
