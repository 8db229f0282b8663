// SPDX-License-Identifier: MIT
// Gradients of attention for a block of queries and a block of keys. Included by kernels.inl.
// Probabilities P and the gradient of the scores dS stand transposed, a row per key and a lane per
// query, as in attend.inl. docs/04-backward.md derives the five products.

/// A tile of queries, `Vectors` vectors of lanes, meeting one block of keys.
template <class S, int Vectors>
struct GradientTask {
  using T = typename S::Scalar;
  KeyBlock<T> block;
  BackwardQueries<T> queries;
  Index lane;  // where this tile begins in the block of queries

  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return S::lanes(block.words[key] >> (lane + vector * S::width));
  }
};

/// sums = matrix rows [key, key + Rows) · packed, by the tile product.
template <class S, int Rows, int Vectors>
HEED_SIMD void row_products(const Strided<typename S::Scalar>& matrix, Index key,
                            const typename S::Scalar* packed, Index depth,
                            typename S::V (&sums)[Rows][Vectors]) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::broadcast(0);
  }
  multiply<S, Rows, Vectors>(matrix.data + key * matrix.row_stride, matrix.row_stride,
                             matrix.column_stride, packed, query_block, depth, sums);
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
  row_products<S, Rows, Vectors>(task.block.keys, key, queries.packed_queries + task.lane,
                                 queries.head_dim, sums);
  if (task.block.words) {
    finish_probabilities<true, S, Rows, Vectors>(task, key, sums);
  } else {
    finish_probabilities<false, S, Rows, Vectors>(task, key, sums);
  }
  row_products<S, Rows, Vectors>(task.block.values, key, queries.packed_gradient + task.lane,
                                 queries.value_dim, sums);
  if (task.block.words) {
    finish_grad_scores<true, S, Rows, Vectors>(task, key, sums);
  } else {
    finish_grad_scores<false, S, Rows, Vectors>(task, key, sums);
  }
}

/// grad_score_rows for all keys of the block.
template <class S, int Vectors>
HEED_SIMD void grad_score_block(const GradientTask<S, Vectors>& task) {
  const Index count = task.block.count;
  Index key = 0;
  for (; key + tile_rows <= count; key += tile_rows) {
    grad_score_rows<S, tile_rows, Vectors>(task, key);
  }
  for (; key + 2 <= count; key += 2) grad_score_rows<S, 2, Vectors>(task, key);
  if (key < count) grad_score_rows<S, 1, Vectors>(task, key);
}

/// One column of tiles of c += a · b: rows [0, rows) of a, `Vectors` vectors of b and c.
template <class S, int Vectors>
HEED_SIMD void add_product(const typename S::Scalar* a, Index a_row, Index a_step,
                           const typename S::Scalar* b, Index stride, Index depth,
                           typename S::Scalar* c, Index rows) {
  Index row = 0;
  for (; row + tile_rows <= rows; row += tile_rows) {
    tile_product<S, tile_rows, Vectors>(a + row * a_row, a_row, a_step, b, stride, depth,
                                        c + row * stride, true);
  }
  for (; row + 2 <= rows; row += 2) {
    tile_product<S, 2, Vectors>(a + row * a_row, a_row, a_step, b, stride, depth, c + row * stride,
                                true);
  }
  if (row < rows) {
    tile_product<S, 1, Vectors>(a + row * a_row, a_row, a_step, b, stride, depth, c + row * stride,
                                true);
  }
}

/// grad[key] += Σ_query weights[key][query] · rows[query]: dV from P and dO, dK from dS and Q.
template <class S, int Vectors>
HEED_SIMD void add_rows(const typename S::Scalar* weights, Index keys,
                        const typename S::Scalar* rows, Index count, Index columns,
                        typename S::Scalar* grad) {
  Index column = 0;
  for (; column + Vectors * S::width <= columns; column += Vectors * S::width) {
    add_product<S, Vectors>(weights, query_block, 1, rows + column, columns, count, grad + column,
                            keys);
  }
  if constexpr (Vectors == 4) {
    for (; column < columns; column += S::width) {
      add_product<S, 1>(weights, query_block, 1, rows + column, columns, count, grad + column,
                        keys);
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

/// grad_queries += Kᵀ·dS over the block, by the tile product.
template <class S, int Vectors>
HEED_SIMD void add_keys(const GradientTask<S, Vectors>& task) {
  const auto& keys = task.block.keys;
  add_product<S, Vectors>(keys.data, keys.column_stride, keys.row_stride,
                          task.queries.grad_scores + task.lane, query_block, task.block.count,
                          task.queries.grad_queries + task.lane, task.queries.head_dim);
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
