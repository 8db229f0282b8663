// SPDX-License-Identifier: MIT
// Softmax attention of a block of queries over a block of keys. Included by kernels.inl.
// Scores stand transposed, Sᵀ = K·Qᵀ: a row per key, a lane per query, so that the maximum, the
// exponential and the sums need no operation across lanes. docs/03-attention.md derives it.

/// Log2 of the probability of a masked score: so small that 2^x is exactly 0.
template <class T>
inline constexpr T masked_exponent = static_cast<T>(-2 * LaneTypes<T>::bias);

/// One tile of queries taking in one block of keys: `Vectors` vectors of lanes, standing side by
/// side in rows that are `tile_stride` lanes long.
template <class S, int Vectors>
struct TileTask {
  using T = typename S::Scalar;
  static constexpr int lanes = Vectors * S::width;
  static constexpr int stride = tile_stride<S>;

  KeyBlock<T> block;
  const T* packed;   // [head_dim][lane]
  T* probabilities;  // [key][lane]
  T* output;         // [value_dim][lane]
  T* maximum;        // [lane]
  T* sum;            // [lane]
  Index head_dim;
  Index value_dim;
  int first_lane;  // where this tile begins in the lane words

  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return S::lanes(block.words[key] >> (first_lane + vector * S::width));
  }
};

enum class Scores { probabilities, masked_probabilities, raw };

/// What becomes of the scores of `Rows` keys while they are in registers: probabilities 2^(s - m),
/// stored and added to `totals` key by key; or the raw scores, stored, and their maximum over
/// visible keys in `totals`.
template <Scores kind, class S, int Rows, int Vectors>
HEED_SIMD void finish_scores(const TileTask<S, Vectors>& task, Index key,
                             typename S::V (&scores)[Rows][Vectors], typename S::Scalar* totals) {
  using T = typename S::Scalar;
  T* out = task.probabilities + key * task.stride;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    auto total = S::load(totals + j * S::width);
    const auto maximum = S::load(task.maximum + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      auto x = scores[r][j];
      if constexpr (kind == Scores::raw) {
        S::store(out + r * task.stride + j * S::width, x);
        if (task.block.words) {
          const auto lowest = S::broadcast(std::numeric_limits<T>::lowest());
          x = S::select(task.visible(key + r, j), x, lowest);
        }
        total = S::max(total, x);
      } else {
        x = x - maximum;
        if constexpr (kind == Scores::masked_probabilities) {
          x = S::select(task.visible(key + r, j), x, S::broadcast(masked_exponent<T>));
        }
        x = exp2<S>(x);
        total = total + x;
        S::store(out + r * task.stride + j * S::width, x);
      }
    }
    S::store(totals + j * S::width, total);
  }
}

/// Scores of the keys [key, key + Rows), by the tile product, then finish_scores.
template <class S, int Rows, int Vectors>
HEED_KERNEL void score_rows(const TileTask<S, Vectors>& task, Index key, bool raw,
                            typename S::Scalar* totals) {
  typename S::V scores[Rows][Vectors];
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) scores[r][j] = S::broadcast(0);
  }
  const auto& keys = task.block.keys;
  multiply<S, Rows, Vectors>(keys.data + key * keys.row_stride, keys.row_stride, keys.column_stride,
                             task.packed, task.stride, task.head_dim, scores);
  if (raw) {
    finish_scores<Scores::raw>(task, key, scores, totals);
  } else if (task.block.words) {
    finish_scores<Scores::masked_probabilities>(task, key, scores, totals);
  } else {
    finish_scores<Scores::probabilities>(task, key, scores, totals);
  }
}

/// score_rows for all keys of the block.
template <class S, int Vectors>
HEED_SIMD void score_block(const TileTask<S, Vectors>& task, bool raw, typename S::Scalar* totals) {
  const Index count = task.block.count;
  Index key = 0;
  for (; key + tile_rows <= count; key += tile_rows) {
    score_rows<S, tile_rows, Vectors>(task, key, raw, totals);
  }
  for (; key + 2 <= count; key += 2) score_rows<S, 2, Vectors>(task, key, raw, totals);
  if (key < count) score_rows<S, 1, Vectors>(task, key, raw, totals);
}

/// Moves the maximum of the lanes that need it to the maximum of this block (`block_maximum`) and
/// makes probabilities of the raw scores. A lane needs it when its sum over this block by the old
/// maximum (`block_sum`) passes the lazy limit; in a fresh state every lane does.
template <class S, int Vectors>
HEED_KERNEL void rescale(const TileTask<S, Vectors>& task, bool first,
                         const typename S::Scalar* block_sum,
                         const typename S::Scalar* block_maximum) {
  using T = typename S::Scalar;
  for (int j = 0; j < Vectors; ++j) {
    const int lane = j * S::width;
    const auto old = S::load(task.maximum + lane);
    const auto found = S::load(block_maximum + lane);
    const auto moves = first ? S::greater(found, old)
                             : S::greater(S::load(block_sum + lane), S::broadcast(lazy_limit<T>));
    const auto maximum = S::select(moves, found, old);
    const auto factor = exp2<S>(old - maximum);
    auto total = S::broadcast(0);
    for (Index key = 0; key < task.block.count; ++key) {
      T* at = task.probabilities + key * task.stride + lane;
      auto x = S::load(at) - maximum;
      if (task.block.words) {
        x = S::select(task.visible(key, j), x, S::broadcast(masked_exponent<T>));
      }
      x = exp2<S>(x);
      total = total + x;
      S::store(at, x);
    }
    S::store(task.maximum + lane, maximum);
    S::store(task.sum + lane, first ? total : S::fma(S::load(task.sum + lane), factor, total));
    for (Index d = 0; !first && d < task.value_dim; ++d) {
      T* at = task.output + d * task.stride + lane;
      S::store(at, S::load(at) * factor);
    }
  }
}

/// output += Vᵀ·P over the block, by the tile product.
template <class S, int Vectors>
HEED_SIMD void add_values(const TileTask<S, Vectors>& task, bool accumulate) {
  const auto& values = task.block.values;
  const Index step = values.column_stride;
  Index d = 0;
  for (; d + tile_rows <= task.value_dim; d += tile_rows) {
    tile_product<S, tile_rows, Vectors>(values.data + d * step, step, values.row_stride,
                                        task.probabilities, task.stride, task.block.count,
                                        task.output + d * task.stride, accumulate);
  }
  for (; d + 2 <= task.value_dim; d += 2) {
    tile_product<S, 2, Vectors>(values.data + d * step, step, values.row_stride, task.probabilities,
                                task.stride, task.block.count, task.output + d * task.stride,
                                accumulate);
  }
  if (d < task.value_dim) {
    tile_product<S, 1, Vectors>(values.data + d * step, step, values.row_stride, task.probabilities,
                                task.stride, task.block.count, task.output + d * task.stride,
                                accumulate);
  }
}

/// add_values where a masked value is NaN or Inf: a masked pair is not touched at all. Selected by
/// mask and not by p == 0, since an underflowed p times a visible Inf is still NaN.
template <class S, int Vectors>
HEED_KERNEL void add_values_guarded(const TileTask<S, Vectors>& task, bool accumulate) {
  const auto& values = task.block.values;
  for (Index d = 0; d < task.value_dim; ++d) {
    for (int j = 0; j < Vectors; ++j) {
      auto* at = task.output + d * task.stride + j * S::width;
      auto sum = accumulate ? S::load(at) : S::broadcast(0);
      for (Index key = 0; key < task.block.count; ++key) {
        const auto value =
            S::broadcast(values.data[key * values.row_stride + d * values.column_stride]);
        const auto p = S::load(task.probabilities + key * task.stride + j * S::width);
        sum = S::select(task.visible(key, j), S::fma(value, p, sum), sum);
      }
      S::store(at, sum);
    }
  }
}

/// One block of keys into the softmax of one tile of queries.
template <class S, int Vectors>
HEED_KERNEL void attend_tile(const TileTask<S, Vectors>& task, bool first) {
  using T = typename S::Scalar;
  alignas(64) T totals[task.lanes];
  bool settled = false;
  if (!first) {
    for (T& total : totals) total = 0;
    score_block(task, false, totals);
    settled = true;
    for (const T total : totals) settled = settled && !(total > lazy_limit<T>);
  }
  if (settled) {
    for (int j = 0; j < Vectors; ++j) {
      T* sum = task.sum + j * S::width;
      S::store(sum, S::load(sum) + S::load(totals + j * S::width));
    }
  } else {
    alignas(64) T maximum[task.lanes];
    for (T& value : maximum) value = std::numeric_limits<T>::lowest();
    score_block(task, true, maximum);
    rescale(task, first, totals, maximum);
  }
  if (task.block.guard_values) {
    add_values_guarded(task, !first);
  } else {
    add_values(task, !first);
  }
}
