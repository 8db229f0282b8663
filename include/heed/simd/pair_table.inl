// SPDX-License-Identifier: MIT
// The entries of PairKernels. Included by part.inl, after attend_pairs.inl.

template <class T>
struct PairTable {
  using S = Lanes<T>;
  using P = Pairs<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr Index lanes = vectors * S::width;

  HEED_SIMD static std::uint16_t element(const MatrixRef<std::uint16_t>& rows, Index row,
                                         Index column) {
    return rows.data[row * rows.row_stride + column * rows.column_stride];
  }

  /// 16 rows by 32 columns, as pairs, by a transpose.
  HEED_KERNEL static void pack_square(const std::uint16_t* rows, Index row_stride, Index count,
                                      std::uint16_t* packed) {
    typename S::V pairs[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      pairs[i] = (typename S::V)P::load(row_or_last(rows, row_stride, count, i));
    }
    transpose<S>(pairs);
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      P::store(packed + i * 2 * lanes, (typename P::V)pairs[i]);
    }
  }

  HEED_KERNEL static void pack(MatrixRef<std::uint16_t> rows, Index count, Index columns,
                               std::uint16_t* packed) {
    const Index depth = (columns + 1) / 2;
    for (Index lane = 0; lane < count; lane += S::width) {
      std::uint16_t* tile = packed + lane / lanes * lanes * 2 * depth + lane % lanes * 2;
      Index column = 0;
      for (; rows.column_stride == 1 && column + P::step <= columns; column += P::step) {
        pack_square(rows.data + lane * rows.row_stride + column, rows.row_stride, count - lane,
                    tile + column * lanes);
      }
      for (; column < columns; ++column) {
        for (Index i = 0; i < S::width; ++i) {
          const Index row = lane + i < count ? lane + i : count - 1;
          std::uint16_t* to = tile + column / 2 * 2 * lanes + 2 * i;
          to[column % 2] = element(rows, row, column);
          if (column + 1 == columns && column % 2 == 0) to[1] = 0;
        }
      }
    }
  }

  HEED_KERNEL static void zip(MatrixRef<std::uint16_t> rows, Index count, Index columns,
                              std::uint16_t* pairs) {
    for (Index row = 0; row < count; row += 2, pairs += 2 * columns) {
      const bool alone = row + 1 == count;
      Index column = 0;
      for (; !alone && rows.column_stride == 1 && column + P::step <= columns; column += P::step) {
        const std::uint16_t* at = rows.data + row * rows.row_stride + column;
        P::store_zipped(P::load(at), P::load(at + rows.row_stride), pairs + 2 * column);
      }
      for (; column < columns; ++column) {
        pairs[2 * column] = element(rows, row, column);
        pairs[2 * column + 1] = alone ? std::uint16_t{0} : element(rows, row + 1, column);
      }
    }
  }

  HEED_KERNEL static bool all_finite(const std::uint16_t* values, Index count) {
    typename P::Halves carries{};  // an exponent of ones, plus one, carries into the sign's place
    std::uint32_t carry = 0;
    Index i = 0;
    for (; i + P::step <= count; i += P::step) {
      carries |= ((typename P::Halves)P::load(values + i) & 0x7f80) + 0x80;
    }
    for (; i < count; ++i) carry |= (values[i] & 0x7f80u) + 0x80;
    for (int j = 0; j < P::step; ++j) carry |= carries[j];
    return (carry & 0x8000) == 0;
  }

  /// Keys that some of the lanes [lane, lane + width) see: from `first` on, a whole number of pairs
  /// in front cut off, `count` of them.
  struct Seen {
    Index first;
    Index count;
  };
  HEED_SIMD static Seen seen_by(const PairKeys& keys, Index lane, Index width) {
    if (keys.words == nullptr) return {0, keys.count};
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width) << lane;
    Index first = 0, end = keys.count;
    while (first < end && (keys.words[first] & mask) == 0) ++first;
    while (end > first && (keys.words[end - 1] & mask) == 0) --end;
    first -= first % 2;
    return {first, end - first};
  }

  template <int Vectors>
  HEED_SIMD static void attend_lanes(const PairKeys& keys, const PairQueries<T>& queries,
                                     const SoftmaxState<T>& state, Index lane, bool first) {
    const auto seen = seen_by(keys, lane, Vectors * S::width);
    const Index tile = lane / lanes * lanes, within = lane % lanes;
    const Index depth = (queries.head_dim + 1) / 2;
    T* output = state.output + tile * queries.value_dim + within;
    if (seen.count == 0) {
      for (Index d = 0; first && d < queries.value_dim; ++d) {
        for (int j = 0; j < Vectors; ++j) {
          S::store(output + d * lanes + j * S::width, S::broadcast(0));
        }
      }
      return;
    }
    attend_pair_tile<T, Vectors>(
        {keys, seen.first, seen.count, queries.packed + tile * 2 * depth + 2 * within,
         queries.scores + within, reinterpret_cast<std::uint16_t*>(queries.scores) + 2 * within,
         output, state.maximum + lane, state.sum + lane, queries.factor, depth, queries.value_dim,
         static_cast<int>(lane)},
        first);
  }

  /// As Table::narrow_pays.
  HEED_SIMD static bool narrow_pays(const PairKeys& keys, Index lane, Index left) {
    if (left <= 3 * S::width) return true;
    if (keys.words == nullptr) return false;
    Index narrow = 0;
    for (int j = 0; j < vectors; ++j) {
      narrow += seen_by(keys, lane + j * S::width, S::width).count;
    }
    return 5 * narrow < 4 * vectors * seen_by(keys, lane, lanes).count;
  }

  HEED_KERNEL static void attend(const PairKeys& keys, const PairQueries<T>& queries,
                                 const SoftmaxState<T>& state, bool first) {
    for (Index tile = 0; tile < queries.count; tile += lanes) {
      const Index left = queries.count - tile < lanes ? queries.count - tile : lanes;
      if (narrow_pays(keys, tile, left)) {
        for (Index lane = 0; lane < left; lane += S::width) {
          attend_lanes<1>(keys, queries, state, tile + lane, first);
        }
      } else {
        attend_lanes<vectors>(keys, queries, state, tile, first);
      }
    }
  }
};
