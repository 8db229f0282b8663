// SPDX-License-Identifier: MIT
// Softmax attention of a block of queries over a block of keys. Included by part.inl.
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
  using V = typename S::V;
  static constexpr int lanes = Vectors * S::width;
  static constexpr int stride = tile_stride<S>;

  KeyBlock<T> block;
  const T* packed;   // [head_dim][lane]
  T* scores;         // [key][lane], before the softmax; may be where the probabilities go
  T* probabilities;  // [key][lane]
  T* output;         // [value_dim][lane]
  T* maximum;        // [lane]
  T* sum;            // [lane]
  const T* bias;     // (key, lane), of a ScoreChange
  Index head_dim;
  Index value_dim;
  int first_lane;  // where this tile begins in the lane words

  HEED_SIMD typename S::M lanes_of(std::uint64_t word, int vector) const {
    return S::lanes(word >> (first_lane + vector * S::width));
  }
  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return lanes_of(block.words[key], vector);
  }
};

#include <heed/simd/scores.inl>

/// Moves the maximum of the lanes that need it to the maximum of this block and makes
/// probabilities of the stored scores. A lane needs it when its sum over this block by the old
/// maximum (`block_sum`) passes the lazy limit; in a fresh state every lane does.
template <class S, int Vectors>
HEED_KERNEL void rescale(const TileTask<S, Vectors>& task, bool first,
                         const typename S::Scalar* block_sum) {
  using T = typename S::Scalar;
  for (int j = 0; j < Vectors; ++j) {
    const int lane = j * S::width;
    const auto old = S::load(task.maximum + lane);
    const auto found = largest_score(task, j);
    const auto moves = first ? S::greater(found, old)
                             : S::greater(S::load(block_sum + lane), S::broadcast(lazy_limit<T>));
    const auto maximum = S::select(moves, found, old);
    const auto factor = exp2<S>(old - maximum);
    const auto total = soften(task, j, maximum);
    S::store(task.maximum + lane, maximum);
    S::store(task.sum + lane, first ? total : S::fma(S::load(task.sum + lane), factor, total));
    for (Index d = 0; !first && d < task.value_dim; ++d) {
      T* at = task.output + d * task.stride + lane;
      S::store(at, S::load(at) * factor);
    }
  }
}

/// Probabilities of the block by the maxima as they stand, and their sum in every lane.
template <class S, int Vectors>
HEED_SIMD void sum_block(const TileTask<S, Vectors>& task, typename S::Scalar* totals) {
  if (task.block.change) {
    for (int j = 0; j < Vectors; ++j) {
      const auto maximum = S::load(task.maximum + j * S::width);
      S::store(totals + j * S::width, soften(task, j, maximum));
    }
  } else {
    for (int lane = 0; lane < task.lanes; ++lane) totals[lane] = 0;
    score_block(task, totals);
  }
}

/// output += Vᵀ·P over the block, by the tile product.
template <class S, int Vectors>
HEED_SIMD void add_values(const TileTask<S, Vectors>& task, bool accumulate) {
  const auto& values = task.block.values;
  tile_products<S, Vectors>(values.data, values.column_stride, values.row_stride,
                            task.probabilities, task.stride, task.block.count, task.output,
                            task.stride, task.value_dim, accumulate);
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
  const auto* change = task.block.change;
  alignas(64) T totals[task.lanes];
  if (change && !change->given) score_block<S, Vectors>(task, nullptr);
  bool settled = !first;
  if (!first) {
    sum_block(task, totals);
    for (const T total : totals) settled = settled && !(total > lazy_limit<T>);
  }
  if (settled) {
    for (int j = 0; j < Vectors; ++j) {
      T* sum = task.sum + j * S::width;
      S::store(sum, S::load(sum) + S::load(totals + j * S::width));
    }
  } else {
    if (!change) score_block<S, Vectors>(task, nullptr);
    rescale(task, first, totals);
  }
  if (task.block.guard_values) {
    add_values_guarded(task, !first);
  } else {
    add_values(task, !first);
  }
}
