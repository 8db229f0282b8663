// SPDX-License-Identifier: MIT
// Gradients of attention for a block of queries and a block of keys. Included by part.inl.
// Probabilities P and the gradient of the scores dS stand transposed, a row per key and a lane per
// query, as in attend.inl. docs/04-backward.md derives the five products.

/// A tile of queries, `Vectors` vectors of lanes, meeting one block of keys.
template <class S, int Vectors>
struct GradientTask {
  using T = typename S::Scalar;
  KeyBlock<T> block;
  BackwardQueries<T> queries;
  Index lane;  // where this tile begins in the block of queries

  HEED_SIMD typename S::M lanes_of(std::uint64_t word, int vector) const {
    return S::lanes(word >> (lane + vector * S::width));
  }
  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return lanes_of(block.words[key], vector);
  }
  /// Where this tile's lanes stand in arrays that hold `rows` rows for every whole tile.
  HEED_SIMD Index in_tiles(Index rows) const {
    constexpr Index whole = tile_stride<S>;
    return lane / whole * whole * rows + lane % whole;
  }
};

/// sums = matrix rows [key, key + Rows) · packed, by the tile product.
template <class S, int Rows, int Vectors>
HEED_SIMD void row_products(const GradientTask<S, Vectors>& task,
                            const MatrixRef<typename S::Scalar>& matrix, Index key,
                            const typename S::Scalar* packed, Index depth,
                            typename S::V (&sums)[Rows][Vectors]) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::broadcast(0);
  }
  multiply<S, Rows, Vectors>(matrix.data + key * matrix.row_stride, matrix.row_stride,
                             matrix.column_stride, packed + task.in_tiles(depth), tile_stride<S>,
                             depth, sums);
}

/// P = 2^(s − lse) of the keys [key, key + Rows), 0 where masked.
template <bool masked, class S, int Rows, int Vectors>
HEED_SIMD void finish_probabilities(const GradientTask<S, Vectors>& task, Index key,
                                    typename S::V (&scores)[Rows][Vectors]) {
  auto* out = task.queries.probabilities + key * query_block + task.lane;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    const auto lse = S::load(task.queries.log_sum_exp + task.lane + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      auto p = exp2<S>(scores[r][j] - lse);
      if constexpr (masked) p = S::select(task.visible(key + r, j), p, S::broadcast(0));
      S::store(out + r * query_block + j * S::width, p);
    }
  }
}

/// dS = P · (dP − delta), 0 where masked: by the mask's bits, since 0 · NaN is NaN.
template <bool masked, class S, int Rows, int Vectors>
HEED_SIMD void finish_grad_scores(const GradientTask<S, Vectors>& task, Index key,
                                  typename S::V (&gradient)[Rows][Vectors]) {
  const Index offset = key * query_block + task.lane;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    const auto delta = S::load(task.queries.delta + task.lane + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = offset + r * query_block + j * S::width;
      auto x = S::load(task.queries.probabilities + at) * (gradient[r][j] - delta);
      if constexpr (masked) x = S::select(task.visible(key + r, j), x, S::broadcast(0));
      S::store(task.queries.grad_scores + at, x);
    }
  }
}

/// P and dS of the keys [key, key + Rows): the products K·Qᵀ and V·dOᵀ.
template <class S, int Rows, int Vectors>
HEED_KERNEL void grad_score_rows(const GradientTask<S, Vectors>& task, Index key) {
  const auto& queries = task.queries;
  typename S::V sums[Rows][Vectors];
  row_products(task, task.block.keys, key, queries.packed_queries, queries.head_dim, sums);
  if (task.block.words) {
    finish_probabilities<true, S, Rows, Vectors>(task, key, sums);
  } else {
    finish_probabilities<false, S, Rows, Vectors>(task, key, sums);
  }
  row_products(task, task.block.values, key, queries.packed_gradient, queries.value_dim, sums);
  if (task.block.words) {
    finish_grad_scores<true, S, Rows, Vectors>(task, key, sums);
  } else {
    finish_grad_scores<false, S, Rows, Vectors>(task, key, sums);
  }
}

#include <heed/simd/backward_changes.inl>

/// P and dS for the keys [key, key + Rows), by plain scores or changed ones.
template <class S, int Rows, int Vectors>
HEED_SIMD void any_grad_score_rows(const GradientTask<S, Vectors>& task, Index key) {
  if (task.block.change) {
    changed_grad_score_rows<S, Rows, Vectors>(task, key);
  } else {
    grad_score_rows<S, Rows, Vectors>(task, key);
  }
}
template <class S, int Vectors>
HEED_SIMD void grad_score_block(const GradientTask<S, Vectors>& task) {
  const Index count = task.block.count;
  Index key = 0;
  for (; key + tile_rows <= count; key += tile_rows) {
    any_grad_score_rows<S, tile_rows, Vectors>(task, key);
  }
  for (; key + 2 <= count; key += 2) any_grad_score_rows<S, 2, Vectors>(task, key);
  if (key < count) any_grad_score_rows<S, 1, Vectors>(task, key);
}

/// Lanes [first, end) of a block of queries.
struct LaneRange {
  Index first = 0;
  Index end = 0;
};

/// The lanes between the first and the last that sees one of the keys [key, key + rows).
template <class T>
HEED_SIMD LaneRange seeing_lanes(const KeyBlock<T>& block, Index key, Index rows, Index count) {
  if (block.words == nullptr) return {0, count};
  std::uint64_t any = 0;
  for (Index r = 0; r < rows; ++r) any |= block.words[key + r];
  if (any == 0) return {};
  return {__builtin_ctzll(any), 64 - __builtin_clzll(any)};
}

/// grad[key] += Σ_query weights[key][query] · rows[query] for the keys [key, key + Rows): dV from P
/// and dO, dK from dS and Q. Queries at the ends that see none of the keys are left out.
template <class S, int Rows, int Vectors>
HEED_SIMD void add_rows_to(const KeyBlock<typename S::Scalar>& block, Index key,
                           const typename S::Scalar* weights, const typename S::Scalar* rows,
                           Index count, Index columns, typename S::Scalar* grad) {
  const LaneRange lanes = seeing_lanes(block, key, Rows, count);
  tile_product<S, Rows, Vectors>(weights + key * query_block + lanes.first, query_block, 1,
                                 rows + lanes.first * columns, columns, lanes.end - lanes.first,
                                 grad + key * columns, columns, true);
}

/// add_rows_to for all keys of the block and one column of tiles.
template <class S, int Vectors>
HEED_SIMD void add_rows_column(const KeyBlock<typename S::Scalar>& block,
                               const typename S::Scalar* weights, const typename S::Scalar* rows,
                               Index count, Index columns, typename S::Scalar* grad) {
  Index key = 0;
  for (; key + tile_rows <= block.count; key += tile_rows) {
    add_rows_to<S, tile_rows, Vectors>(block, key, weights, rows, count, columns, grad);
  }
  for (; key + 2 <= block.count; key += 2) {
    add_rows_to<S, 2, Vectors>(block, key, weights, rows, count, columns, grad);
  }
  if (key < block.count) {
    add_rows_to<S, 1, Vectors>(block, key, weights, rows, count, columns, grad);
  }
}

/// add_rows_column for all columns.
template <class S, int Vectors>
HEED_SIMD void add_rows(const KeyBlock<typename S::Scalar>& block,
                        const typename S::Scalar* weights, const typename S::Scalar* rows,
                        Index count, Index columns, typename S::Scalar* grad) {
  Index column = 0;
  for (; column + Vectors * S::width <= columns; column += Vectors * S::width) {
    add_rows_column<S, Vectors>(block, weights, rows + column, count, columns, grad + column);
  }
  if constexpr (Vectors == 4) {
    for (; column < columns; column += S::width) {
      add_rows_column<S, 1>(block, weights, rows + column, count, columns, grad + column);
    }
  }
}

/// add_rows where a row is NaN or Inf: a masked pair is not touched at all.
template <class S>
HEED_KERNEL void add_rows_guarded(const KeyBlock<typename S::Scalar>& block,
                                  const typename S::Scalar* weights, const typename S::Scalar* rows,
                                  Index count, Index columns, typename S::Scalar* grad) {
  for (Index key = 0; key < block.count; ++key) {
    for (Index column = 0; column < columns; column += S::width) {
      auto* at = grad + key * columns + column;
      auto sum = S::load(at);
      for (Index i = 0; i < count; ++i) {
        if ((block.words[key] >> i & 1) == 0) continue;
        sum = S::fma(S::broadcast(weights[key * query_block + i]),
                     S::load(rows + i * columns + column), sum);
      }
      S::store(at, sum);
    }
  }
}

/// grad_queries[d] += Σ_key keys[key][d] · dS[key], by the tile product.
template <class S, int Vectors>
HEED_SIMD void add_keys(const GradientTask<S, Vectors>& task) {
  const auto& keys = task.block.keys;
  tile_products<S, Vectors>(keys.data, keys.column_stride, keys.row_stride,
                            task.queries.grad_scores + task.lane, query_block, task.block.count,
                            task.queries.grad_queries + task.lane, query_block,
                            task.queries.head_dim, true);
}

/// add_keys where a masked key is NaN or Inf: a masked pair is not touched at all.
template <class S, int Vectors>
HEED_KERNEL void add_keys_guarded(const GradientTask<S, Vectors>& task) {
  const auto& keys = task.block.keys;
  for (Index d = 0; d < task.queries.head_dim; ++d) {
    for (int j = 0; j < Vectors; ++j) {
      const Index lane = task.lane + j * S::width;
      auto* at = task.queries.grad_queries + d * query_block + lane;
      auto sum = S::load(at);
      for (Index key = 0; key < task.block.count; ++key) {
        const auto value = S::broadcast(keys.data[key * keys.row_stride + d * keys.column_stride]);
        const auto x = S::load(task.queries.grad_scores + key * query_block + lane);
        sum = S::select(task.visible(key, j), S::fma(value, x, sum), sum);
      }
      S::store(at, sum);
    }
  }
}
