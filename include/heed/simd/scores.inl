// SPDX-License-Identifier: MIT
// Scores of a tile, from the product to probabilities. Included by attend.inl, after its TileTask.

/// The softcap and the bias of a ScoreChange, on the scores of `rows` keys just stored. A loop, not
/// registers: it is the same for all tiles, and code is compile time.
template <class S, int Vectors>
HEED_KERNEL void change_scores(const TileTask<S, Vectors>& task, Index key, Index rows) {
  const auto& change = *task.block.change;
  for (Index row = key; row < key + rows; ++row) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      auto* at = task.scores + row * task.stride + j * S::width;
      auto score = S::load(at);
      if (change.cap != 0) score = tanh_of_log2<S>(score) * S::broadcast(change.cap);
      if (change.bias) score = score + S::load(task.bias + row * change.bias_row + j * S::width);
      S::store(at, score);
    }
  }
}

/// Stores the scores of `Rows` keys, changed.
template <class S, int Rows, int Vectors>
HEED_SIMD void store_scores(const TileTask<S, Vectors>& task, Index key,
                            const typename S::V (&scores)[Rows][Vectors]) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      S::store(task.scores + (key + r) * task.stride + j * S::width, scores[r][j]);
    }
  }
  if (task.block.change) change_scores(task, key, Rows);
}

/// Makes probabilities 2^(s - m) of the scores of `Rows` keys while they are in registers; stores
/// them and adds them to `totals` key by key.
template <class S, int Rows, int Vectors>
HEED_SIMD void store_probabilities(const TileTask<S, Vectors>& task, Index key,
                                   typename S::V (&scores)[Rows][Vectors],
                                   typename S::Scalar* totals) {
  using T = typename S::Scalar;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    const auto maximum = S::load(task.maximum + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) scores[r][j] = scores[r][j] - maximum;
  }
  if (task.block.words) {
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        const auto hidden = S::broadcast(masked_exponent<T>);
        scores[r][j] = S::select(task.visible(key + r, j), scores[r][j], hidden);
      }
    }
  }
  T* out = task.probabilities + key * task.stride;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    auto total = S::load(totals + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const auto x = exp2<S>(scores[r][j]);
      total = total + x;
      S::store(out + r * task.stride + j * S::width, x);
    }
    S::store(totals + j * S::width, total);
  }
}

/// Scores of the keys [key, key + Rows), by the tile product; with `totals`, their probabilities.
template <class S, int Rows, int Vectors>
HEED_KERNEL void score_rows(const TileTask<S, Vectors>& task, Index key,
                            typename S::Scalar* totals) {
  typename S::V scores[Rows][Vectors];
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) scores[r][j] = S::broadcast(0);
  }
  const auto& keys = task.block.keys;
  multiply<S, Rows, Vectors>(keys.data + key * keys.row_stride, keys.row_stride, keys.column_stride,
                             task.packed, task.stride, task.head_dim, scores);
  if (totals) {
    store_probabilities(task, key, scores, totals);
  } else {
    store_scores(task, key, scores);
  }
}

/// score_rows for all keys of the block: probabilities and their `totals`, or, without `totals`,
/// scores.
template <class S, int Vectors>
HEED_SIMD void score_block(const TileTask<S, Vectors>& task, typename S::Scalar* totals) {
  const Index count = task.block.count;
  Index key = 0;
  for (; key + tile_rows <= count; key += tile_rows) {
    score_rows<S, tile_rows, Vectors>(task, key, totals);
  }
  for (; key + 2 <= count; key += 2) score_rows<S, 2, Vectors>(task, key, totals);
  if (key < count) score_rows<S, 1, Vectors>(task, key, totals);
}

/// Probabilities of the stored scores of one vector of lanes, and their sum key by key.
template <class S, int Vectors>
HEED_KERNEL typename S::V soften(const TileTask<S, Vectors>& task, int vector,
                                 typename S::V maximum) {
  using T = typename S::Scalar;
  const auto* change = task.block.change;
  const std::uint64_t* keep = change && change->keep ? change->keep + task.block.cut : nullptr;
  auto total = S::broadcast(0);
  for (Index key = 0; key < task.block.count; ++key) {
    const Index at = key * task.stride + vector * S::width;
    auto x = S::load(task.scores + at) - maximum;
    if (task.block.words) {
      x = S::select(task.visible(key, vector), x, S::broadcast(masked_exponent<T>));
    }
    x = exp2<S>(x);
    total = total + x;
    if (keep) {
      x = S::select(task.lanes_of(keep[key], vector), x * S::broadcast(change->keep_factor),
                    S::broadcast(0));
    }
    S::store(task.probabilities + at, x);
  }
  return total;
}

/// The largest visible score of every lane of a vector, by the stored scores.
template <class S, int Vectors>
HEED_SIMD typename S::V largest_score(const TileTask<S, Vectors>& task, int vector) {
  const auto lowest = S::broadcast(std::numeric_limits<typename S::Scalar>::lowest());
  auto largest = lowest;
  for (Index key = 0; key < task.block.count; ++key) {
    auto x = S::load(task.scores + key * task.stride + vector * S::width);
    if (task.block.words) x = S::select(task.visible(key, vector), x, lowest);
    largest = S::max(largest, x);
  }
  return largest;
}
