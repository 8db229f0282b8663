// SPDX-License-Identifier: MIT
// The entries of Kernels for one instruction set. Included by part.inl.

template <class T>
struct Table {
  using S = Lanes<T>;
  using V = typename S::V;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr int lanes = vectors * S::width;

  HEED_KERNEL static void pack(MatrixRef<T> rows, Index count, Index columns, T factor, T* packed) {
    for (Index lane = 0; lane < count; lane += S::width) {
      T* tile = packed + lane / lanes * lanes * columns + lane % lanes;
      pack_lanes<S>(rows.data + lane * rows.row_stride, rows.row_stride, rows.column_stride,
                    count - lane, columns, factor, tile, lanes);
    }
    // Wide tiles compute whole tiles: what stands past the last vector must be a number.
    const Index end = (count + S::width - 1) / S::width * S::width;
    if (end % lanes == 0 || vectors == 4) return;
    T* tile = packed + end / lanes * lanes * columns;
    for (Index column = 0; column < columns; ++column) {
      for (Index lane = end % lanes; lane < lanes; ++lane) tile[column * lanes + lane] = 0;
    }
  }

  HEED_KERNEL static void unpack(const T* transposed, Index count, Index columns, const T* factors,
                                 T* out, Index row_stride, Index column_stride) {
    for (Index lane = 0; lane < count; lane += S::width) {
      const T* tile = transposed + lane / lanes * lanes * columns + lane % lanes;
      unpack_lanes<S>(tile, lanes, count - lane, columns, factors + lane, out + lane * row_stride,
                      row_stride, column_stride);
    }
  }

  template <int Vectors>
  HEED_SIMD static TileTask<S, Vectors> task_of(const KeyBlock<T>& keys,
                                                const QueryBlock<T>& queries,
                                                const SoftmaxState<T>& state, Index lane) {
    const Index tile = lane / lanes * lanes, within = lane % lanes;
    T* scores = queries.probabilities;
    const T* bias = nullptr;
    if (keys.change) {
      scores = queries.scores + tile * key_block + keys.cut * lanes + within;
      if (keys.change->bias) {
        bias = keys.change->bias + tile / lanes * keys.change->bias_tile +
               keys.cut * keys.change->bias_row + within;
      }
    }
    return {keys,
            queries.packed + tile * queries.head_dim + within,
            scores,
            queries.probabilities,
            state.output + tile * queries.value_dim + within,
            state.maximum + lane,
            state.sum + lane,
            bias,
            queries.head_dim,
            queries.value_dim,
            static_cast<int>(lane)};
  }

  /// The block without the keys at its ends that none of the lanes [lane, lane + width) sees.
  HEED_SIMD static KeyBlock<T> seen_by(KeyBlock<T> block, Index lane, int width) {
    if (block.words == nullptr) return block;
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width) << lane;
    Index first = 0;
    while (first < block.count && (block.words[first] & mask) == 0) ++first;
    while (block.count > first && (block.words[block.count - 1] & mask) == 0) --block.count;
    block.keys.data += first * block.keys.row_stride;
    block.values.data += first * block.values.row_stride;
    block.words += first;
    block.count -= first;
    block.cut += first;
    return block;
  }

  template <int Vectors>
  HEED_SIMD static void attend_lanes(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                                     const SoftmaxState<T>& state, Index lane, bool first) {
    const auto seen = seen_by(keys, lane, Vectors * S::width);
    const auto task = task_of<Vectors>(seen, queries, state, lane);
    if (seen.count > 0) {
      attend_tile(task, first);
    } else if (first) {
      for (Index d = 0; d < queries.value_dim; ++d) {
        for (int j = 0; j < Vectors; ++j) {
          S::store(task.output + d * task.stride + j * S::width, S::broadcast(0));
        }
      }
    }
  }

  /// Whether a tile is better done vector by vector: it has few queries, or a mask such as the
  /// causal diagonal leaves its vectors unequal work. The width of a tile decides no bit.
  HEED_SIMD static bool narrow_pays(const KeyBlock<T>& keys, Index lane, Index left) {
    if (vectors < 4) return false;
    if (left <= 3 * S::width) return true;
    if (keys.words == nullptr) return false;
    Index narrow = 0;
    for (int j = 0; j < vectors; ++j) {
      narrow += seen_by(keys, lane + j * S::width, S::width).count;
    }
    return 5 * narrow < 4 * vectors * seen_by(keys, lane, lanes).count;
  }

  HEED_KERNEL static void attend(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                                 const SoftmaxState<T>& state, bool first) {
    for (Index tile = 0; tile < queries.count; tile += lanes) {
      const Index left = queries.count - tile < lanes ? queries.count - tile : lanes;
      if constexpr (vectors == 4) {
        if (narrow_pays(keys, tile, left)) {
          for (Index lane = 0; lane < left; lane += S::width) {
            attend_lanes<1>(keys, queries, state, tile + lane, first);
          }
          continue;
        }
      }
      attend_lanes<vectors>(keys, queries, state, tile, first);
    }
  }

  HEED_KERNEL static void scores(const KeyBlock<T>& keys, const QueryBlock<T>& queries) {
    for (Index lane = 0; lane < queries.count; lane += lanes) {
      score_block<S, vectors>(task_of<vectors>(keys, queries, {}, lane), nullptr);
    }
  }

  HEED_KERNEL static void probabilities(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                                        T* maximum) {
    constexpr int narrow = vectors == 4 ? 1 : vectors;
    constexpr int step = narrow * S::width;
    T totals[step] = {};
    for (Index lane = 0; lane < queries.count; lane += step) {
      auto task = task_of<narrow>(keys, queries, {maximum, maximum, queries.probabilities}, lane);
      task.probabilities += lane / lanes * lanes * key_block + lane % lanes;
      if (keys.change && !keys.change->given) score_block<S, narrow>(task, nullptr);
      sum_block(task, totals);
    }
  }

  HEED_KERNEL static void merge(const SoftmaxState<T>& total, const SoftmaxState<T>& part,
                                Index count, Index value_dim) {
    for (Index lane = 0; lane < count; lane += S::width) {
      const auto old = S::load(total.maximum + lane);
      const auto other = S::load(part.maximum + lane);
      const auto maximum = S::max(old, other);
      const auto keep = exp2<S>(old - maximum);
      const auto add = exp2<S>(other - maximum);
      S::store(total.maximum + lane, maximum);
      S::store(total.sum + lane,
               S::fma(S::load(part.sum + lane), add, S::load(total.sum + lane) * keep));
      const Index offset = lane / lanes * lanes * value_dim + lane % lanes;
      for (Index d = 0; d < value_dim; ++d) {
        T* at = total.output + offset + d * lanes;
        const T* from = part.output + offset + d * lanes;
        S::store(at, S::fma(S::load(from), add, S::load(at) * keep));
      }
    }
  }

  /// sums[r] += 0 · row r: NaN where a row holds anything but finite numbers.
  template <int Rows>
  HEED_SIMD static void add_zero_times(const T* at, Index row_stride, Index columns, V* sums) {
    const V zero = S::broadcast(0);
    Index column = 0;
    for (; column + S::width <= columns; column += S::width) {
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        sums[r] = S::fma(S::load(at + r * row_stride + column), zero, sums[r]);
      }
    }
    const Index left = columns - column;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      if (left > 0) {
        sums[r] = S::fma(load_first<S>(at + r * row_stride + column, left), zero, sums[r]);
      }
    }
  }

  HEED_KERNEL static bool all_finite(MatrixRef<T> matrix, Index rows, Index columns) {
    constexpr int together = 4;  // rows with sums apart, so that additions overlap
    V sums[together];
    HEED_UNROLL for (int r = 0; r < together; ++r) sums[r] = S::broadcast(0);
    const bool lines = matrix.column_stride == 1;
    Index row = 0;
    for (; lines && row + together <= rows; row += together) {
      add_zero_times<together>(matrix.data + row * matrix.row_stride, matrix.row_stride, columns,
                               sums);
    }
    for (; lines && row < rows; ++row) {
      add_zero_times<1>(matrix.data + row * matrix.row_stride, 0, columns, sums);
    }
    T sum = 0;
    for (; row < rows; ++row) {
      const T* at = matrix.data + row * matrix.row_stride;
      for (Index column = 0; column < columns; ++column) {
        sum += at[column * matrix.column_stride] * T{0};
      }
    }
    T spill[S::width];
    S::store(spill, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (const T lane : spill) sum += lane;
    return sum == 0;
  }

  HEED_KERNEL static void exp2_of(const T* in, T* out, Index count) {
    Index i = 0;
    for (; i + S::width <= count; i += S::width) S::store(out + i, exp2<S>(S::load(in + i)));
    if (i == count) return;
    T spill[S::width] = {};
    for (Index j = i; j < count; ++j) spill[j - i] = in[j];
    S::store(spill, exp2<S>(S::load(spill)));
    for (Index j = i; j < count; ++j) out[j] = spill[j - i];
  }
};

/// The set's kernels behind pointers.
template <class T>
const Kernels<T>& table() {
  using K = Table<T>;
  static constexpr Kernels<T> entries{K::lanes,  K::pack,       K::unpack,
                                      K::scores, K::attend,     K::probabilities,
                                      K::merge,  K::all_finite, K::exp2_of};
  return entries;
}
