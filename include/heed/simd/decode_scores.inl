// SPDX-License-Identifier: MIT
// Scores of a few queries over a block of keys, lanes being keys. Included by part.inl, before
// decode.inl.

/// Rows of queries that meet a piece of keys or values at a time.
inline constexpr int decoded_at_once = 4;

/// Bytes from one address to another, for `fetch`. Of numbers, since they belong to no one array.
template <class T>
HEED_SIMD std::uintptr_t distance(const T* from, const T* to) {
  return reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
}
/// Asks for the line that will be read in the place of `at` a tile of keys later. Into the second
/// cache: the first one has too few places for lines on their way (measured: 14 of 24 GB/s).
template <class T>
HEED_SIMD void fetch(const T* at, std::uintptr_t ahead) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(at) + ahead;
  __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);  // NOLINT: it may end beyond
}

template <class T>
struct DecodeScores {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr Index lanes = vectors * S::width;
  // Tiles of one vector where there are kernels for them.
  static constexpr int narrow = vectors == 4 ? 1 : vectors;
  // Code is compile time: header-only programs turn keys on the fastest set only.
  static constexpr bool turns_keys =
      HEED_SIMD_BYTES == 64 || (HEED_SIMD_ALL_KERNELS && tile_rows > 2);

  /// Scores of the first `Rows` rows over one vector of keys, which are turned in
  /// registers, width × width numbers at a time, and kept in rows.packed if there are more rows.
  template <int Rows>
  HEED_KERNEL static void score_turned(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key,
                                       std::uintptr_t ahead) {
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
      typename S::V turned[S::width];
      HEED_UNROLL for (int i = 0; i < S::width; ++i) turned[i] = S::load(from[i] + d);
      transpose<S>(turned);
      HEED_UNROLL for (int i = 0; i < S::width; ++i) {
        fetch(from[i] + d, ahead);
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          scores[r] = S::fma(S::broadcast(row[r][d + i]), turned[i], scores[r]);
        }
      }
      if (rows.count <= Rows) continue;
      HEED_UNROLL for (int i = 0; i < S::width; ++i) S::store(packed + (d + i) * lanes, turned[i]);
    }
    if (d < rows.head_dim) {
      pack_lanes<S>(from[0] + d, keys.keys.row_stride, 1, keys.count - key, rows.head_dim - d, 1,
                    packed + d * lanes, lanes);
    }
    for (; d < rows.head_dim; ++d) {
      const auto turned = S::load(packed + d * lanes);
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        scores[r] = S::fma(S::broadcast(row[r][d]), turned, scores[r]);
      }
    }
    T* to = rows.scores + key / lanes * lanes * rows.count + key % lanes;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      if (r < rows.count) S::store(to + r * lanes, scores[r]);
    }
  }

  /// Keys and queries change places: the scores of the rows from `row` on over `narrow` vectors of
  /// packed keys.
  HEED_SIMD static TileTask<S, narrow> packed_task(const KeyBlock<T>& keys,
                                                   const QueryRows<T>& rows, Index row, Index key) {
    const Index tile = key / lanes * lanes, within = key % lanes;
    KeyBlock<T> queries;
    queries.keys = {rows.rows + row * rows.head_dim, rows.head_dim, 1};
    queries.count = rows.count - row;
    queries.change = keys.change;
    const T* bias = nullptr;
    if (keys.change && keys.change->bias) {
      bias = keys.change->bias + row * keys.change->bias_row + key;
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
            0};
  }

  /// The scores of a whole tile of `narrow` vectors from keys as they lie.
  HEED_SIMD static void score_lying(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key) {
    const auto& lying = keys.keys;
    for (Index from = key; from < key + narrow * S::width && from < keys.count; from += S::width) {
      const T* at = lying.data + from * lying.row_stride;
      const std::uintptr_t ahead = from + S::width < keys.count
                                       ? distance(at, at + S::width * lying.row_stride)
                                       : distance(at, keys.values.data);
      if (HEED_SIMD_ALL_KERNELS && rows.count == 1) {
        score_turned<HEED_SIMD_ALL_KERNELS ? 1 : decoded_at_once>(keys, rows, from, ahead);
      } else {
        score_turned<decoded_at_once>(keys, rows, from, ahead);
      }
    }
    const Index done = rows.count < decoded_at_once ? rows.count : decoded_at_once;
    if (keys.change) change_scores(packed_task(keys, rows, 0, key), 0, done);
    if (done < rows.count) {
      score_block<S, narrow>(packed_task(keys, rows, done, key), nullptr);
    }
  }

  HEED_KERNEL static void scores(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    const bool lying = turns_keys && keys.keys.column_stride == 1;
    if (!lying) Table<T>::pack(keys.keys, keys.count, rows.head_dim, 1, rows.packed);
    for (Index key = 0; key < keys.count; key += narrow * S::width) {
      if constexpr (turns_keys) {
        if (lying) {
          score_lying(keys, rows, key);
          continue;
        }
      }
      score_block<S, narrow>(packed_task(keys, rows, 0, key), nullptr);
    }
  }
};
