// SPDX-License-Identifier: MIT
// Gradients of attention for a block of queries and a block of keys. Included by part.inl.
// Probabilities P and the score gradients dS are transposed, a row per key and a lane per query, as
// in attend_queries.inl. docs/04-backward.md derives the five products.

/// A strip of queries, `Vectors` vectors of lanes, and one block of keys.
template <class S, int Vectors>
struct GradientTask {
  using T = typename S::Scalar;
  KeyBlock<T> block;
  BackwardQueries<T> queries;
  Index lane;  // first lane of this strip in the block of queries

  HEED_SIMD typename S::M lanes_of(std::uint64_t word, int vector) const {
    return S::mask_of(word >> (lane + vector * S::width));
  }
  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return lanes_of(block.words[key], vector);
  }
  /// The offset of this strip's lanes in arrays that hold `rows` rows for every whole strip.
  HEED_SIMD Index in_strips(Index rows) const {
    constexpr Index whole = strip_stride<S>;
    return lane / whole * whole * rows + lane % whole;
  }
};

/// sums = matrix rows [key, key + Rows) · packed, by micro tiles.
template <class S, int Rows, int Vectors>
HEED_SIMD void row_products(const GradientTask<S, Vectors>& task,
                            const MatrixRef<typename S::Scalar>& matrix, Index key,
                            const typename S::Scalar* packed, Index depth,
                            typename S::V (&sums)[Rows][Vectors]) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::broadcast(0);
  }
  multiply<S, Rows, Vectors>(matrix.data + key * matrix.row_stride, matrix.row_stride,
                             matrix.column_stride, packed + task.in_strips(depth), strip_stride<S>,
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
  task.block.words ? finish_probabilities<true, S, Rows, Vectors>(task, key, sums)
                   : finish_probabilities<false, S, Rows, Vectors>(task, key, sums);
  row_products(task, task.block.values, key, queries.packed_gradient, queries.value_dim, sums);
  task.block.words ? finish_grad_scores<true, S, Rows, Vectors>(task, key, sums)
                   : finish_grad_scores<false, S, Rows, Vectors>(task, key, sums);
}

// Gradients of scores that a ScoreModArrays modifies.

/// P of modified scores, and, in the place of dS, the derivative of the scores with respect to
/// their products: 1 − tanh² of the softcap times the derivative of the score function. In the
/// place of the gradients of softcapped scores, the second factor.
template <class S, int Rows, int Vectors>
HEED_SIMD void finish_modified_probabilities(const GradientTask<S, Vectors>& task, Index key,
                                             typename S::V (&scores)[Rows][Vectors]) {
  const auto& score_mod = *task.block.score_mod;
  const auto& queries = task.queries;
  typename S::Scalar* const capped_grads = queries.capped_grads;
  const Index row = task.block.cut + key;
  const Index biased = task.lane / strip_stride<S> * score_mod.bias_strip +
                       row * score_mod.bias_row + task.lane % strip_stride<S>;
  const Index given = task.in_strips(key_block) + row * strip_stride<S>;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    const auto lse = S::load(queries.log_sum_exp + task.lane + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = (key + r) * query_block + task.lane + j * S::width;
      const Index placed = given + r * strip_stride<S> + j * S::width;
      auto score = scores[r][j];
      auto slope = S::broadcast(1);
      auto capped_slope = slope;
      if (score_mod.cap != 0) {
        const auto tanh = tanh_of_log2<S>(score);
        score = tanh * S::broadcast(score_mod.cap);
        slope = slope - tanh * tanh;
      }
      if (score_mod.bias) {
        score = score + S::load(score_mod.bias + biased + r * score_mod.bias_row + j * S::width);
      }
      if (score_mod.given) {
        score = S::load(queries.scores + placed);
        capped_slope = S::load(queries.slopes + placed);
        slope = slope * capped_slope;
      }
      auto p = exp2<S>(score - lse);
      if (task.block.words) p = S::select(task.visible(key + r, j), p, S::broadcast(0));
      S::store(queries.probabilities + at, p);
      S::store(queries.grad_scores + at, slope);
      if (capped_grads) S::store(capped_grads + at, capped_slope);
    }
  }
}

/// dS = P · (dP − delta) · slope, with dropout applied to dP and to the P that multiplies dO.
template <class S, int Rows, int Vectors>
HEED_SIMD void finish_modified_grad_scores(const GradientTask<S, Vectors>& task, Index key,
                                           typename S::V (&gradient)[Rows][Vectors]) {
  const auto& score_mod = *task.block.score_mod;
  using T = typename S::Scalar;
  const auto& queries = task.queries;
  T* const capped_grads = queries.capped_grads;
  const auto none = S::broadcast(0);
  const auto factor = S::broadcast(score_mod.keep_factor);
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    const auto delta = S::load(queries.delta + task.lane + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = (key + r) * query_block + task.lane + j * S::width;
      const auto p = S::load(queries.probabilities + at);
      auto grad_weight = gradient[r][j];
      if (score_mod.keep) {
        const auto keep = task.lanes_of(score_mod.keep[task.block.cut + key + r], j);
        grad_weight = S::select(keep, grad_weight * factor, none);
        S::store(queries.probabilities + at, S::select(keep, p * factor, none));
      }
      const auto finish = [&](T* grads) HEED_LAMBDA {
        auto x = p * (grad_weight - delta) * S::load(grads + at);
        if (task.block.words) x = S::select(task.visible(key + r, j), x, none);
        S::store(grads + at, x);
      };
      finish(queries.grad_scores);
      if (capped_grads) finish(capped_grads);
    }
  }
}

/// grad_score_rows with a ScoreModArrays.
template <class S, int Rows, int Vectors>
HEED_KERNEL void modified_grad_score_rows(const GradientTask<S, Vectors>& task, Index key) {
  const auto& queries = task.queries;
  typename S::V sums[Rows][Vectors] = {};
  if (!task.block.score_mod->given || task.block.score_mod->cap != 0) {
    row_products(task, task.block.keys, key, queries.packed_queries, queries.head_dim, sums);
  }
  finish_modified_probabilities<S, Rows, Vectors>(task, key, sums);
  row_products(task, task.block.values, key, queries.packed_gradient, queries.value_dim, sums);
  finish_modified_grad_scores<S, Rows, Vectors>(task, key, sums);
}

/// P and dS for all keys, with or without a ScoreModArrays.
template <class S, int Vectors>
HEED_SIMD void grad_score_block(const GradientTask<S, Vectors>& task) {
  for_each_micro_tile<micro_tile_rows>(task.block.count, [&](auto rows, Index key) HEED_LAMBDA {
    prefetch_coming(task.queries.coming);
    task.block.score_mod ? modified_grad_score_rows<S, rows, Vectors>(task, key)
                         : grad_score_rows<S, rows, Vectors>(task, key);
  });
}

/// grad[key] += Σ_query weights[key][query] · rows[query] for one column of micro tiles: dV from P
/// and dO, dK from dS and Q. Queries at the ends that see none of a tile's keys are left out.
template <class S, int Vectors>
HEED_SIMD void add_rows_column(const KeyBlock<typename S::Scalar>& block,
                               const typename S::Scalar* weights, const typename S::Scalar* rows,
                               Index count, Index columns, typename S::Scalar* grad,
                               ComingRows* coming) {
  for_each_micro_tile<micro_tile_rows>(block.count, [&](auto keys, Index key) HEED_LAMBDA {
    prefetch_coming(coming);
    const Range lanes = seeing(block.words, key, keys, count);
    micro_tile_product<S, keys, Vectors>(
        weights + key * query_block + lanes.first, query_block, 1, rows + lanes.first * columns,
        columns, lanes.end - lanes.first, grad + key * columns, columns, true);
  });
}

/// add_rows_column for all columns.
template <class S, int Vectors>
HEED_SIMD void add_rows(const KeyBlock<typename S::Scalar>& block,
                        const typename S::Scalar* weights, const typename S::Scalar* rows,
                        Index count, Index columns, typename S::Scalar* grad, ComingRows* coming) {
  Index column = 0;
  for (; column + Vectors * S::width <= columns; column += Vectors * S::width) {
    add_rows_column<S, Vectors>(block, weights, rows + column, count, columns, grad + column,
                                coming);
  }
  if constexpr (Vectors == 4) {
    for (; column < columns; column += S::width) {
      add_rows_column<S, 1>(block, weights, rows + column, count, columns, grad + column, coming);
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

/// grad_queries[d] += Σ_key keys[key][d] · dS[key], by micro tiles.
template <class S, int Vectors>
HEED_SIMD void add_keys(const GradientTask<S, Vectors>& task) {
  const auto& keys = task.block.keys;
  micro_tile_products<S, Vectors>(keys.data, keys.column_stride, keys.row_stride,
                                  task.queries.grad_scores + task.lane, query_block,
                                  task.block.count, task.queries.grad_queries + task.lane,
                                  query_block, task.queries.head_dim, true);
}

/// add_keys where a masked key is NaN or Inf.
template <class S, int Vectors>
HEED_SIMD void add_keys_guarded(const GradientTask<S, Vectors>& task) {
  const auto& [block, queries, first] = task;
  for (Index lane = first; lane < first + Vectors * S::width; lane += S::width) {
    add_guarded<S>(block.keys, queries.head_dim, block.words, lane, block.count,
                   queries.grad_scores + lane, query_block, queries.grad_queries + lane,
                   query_block, true);
  }
}

// The entries of BackwardKernels.

template <class T>
struct BackwardTable {
  using S = Lanes<T>;
  static constexpr int lanes = strip_stride<S>;
  // With four vectors side by side, micro tiles of one vector finish the rows.
  static constexpr int row_lanes = HEED_SIMD_VECTORS == 4 ? S::width : lanes;

  HEED_KERNEL static void unpack(const T* packed, Index count, Index columns, T factor, T* rows,
                                 Index row_stride) {
    alignas(64) T factors[S::width];
    S::store(factors, S::broadcast(factor));
    for (Index lane = 0; lane < count; lane += S::width) {
      unpack_lanes<S>(packed + lane, query_block, count - lane, columns, factors,
                      rows + lane * row_stride, row_stride, 1);
    }
  }

  HEED_KERNEL static void row_dots(MatrixRef<T> a, MatrixRef<T> b, Index rows, Index columns,
                                   T* out) {
    for (Index row = 0; row < rows; ++row) {
      const T* of_a = a.data + row * a.row_stride;
      const T* of_b = b.data + row * b.row_stride;
      auto sums = S::broadcast(0);
      for (Index column = 0; column < columns; column += S::width) {
        sums = S::fma(S::load(of_a + column), S::load(of_b + column), sums);
      }
      T spill[S::width];
      S::store(spill, sums);
      T sum = 0;
      for (const T lane : spill) sum += lane;
      out[row] = sum;
    }
  }

  HEED_KERNEL static void put_rows(const T* from, Index from_stride, Index rows, Index columns,
                                   T factor, bool accumulate, T* out, Index row_stride,
                                   Index column_stride) {
    for (Index row = 0; row < rows; ++row) {
      const T* source = from + row * from_stride;
      T* to = out + row * row_stride;
      Index column = 0;
      if (column_stride == 1) {
        for (; column + S::width <= columns; column += S::width) {
          const auto old = accumulate ? S::load(to + column) : S::broadcast(0);
          S::store(to + column, S::load(source + column) * S::broadcast(factor) + old);
        }
      }
      for (; column < columns; ++column) {
        T& at = to[column * column_stride];
        at = source[column] * factor + (accumulate ? at : T{0});
      }
    }
  }

  HEED_KERNEL static void add_in_double(const T* rows, Index count, Index columns, double* sums,
                                        Index step) {
    using D = Lanes<double>;
    for (Index row = 0; row < count; ++row, rows += query_block, sums += step) {
      Index i = 0;
      for (; i + D::width <= columns; i += D::width) {
        D::store(sums + i, D::load(sums + i) + load_in_double(rows + i));
      }
      for (; i < columns; ++i) sums[i] += static_cast<double>(rows[i]);
    }
  }

  /// P = dS = 0 for the keys [first, end).
  template <int Vectors>
  HEED_SIMD static void clear_lanes(const BackwardQueries<T>& queries, Index lane, Index first,
                                    Index end) {
    for (Index key = first; key < end; ++key) {
      for (int j = 0; j < Vectors; ++j) {
        const Index at = key * query_block + lane + j * S::width;
        S::store(queries.probabilities + at, S::broadcast(0));
        S::store(queries.grad_scores + at, S::broadcast(0));
        if (queries.capped_grads) S::store(queries.capped_grads + at, S::broadcast(0));
      }
    }
  }

  /// P and dS of the lanes [lane, lane + Vectors · width) and the keys that one of them sees, and,
  /// unless `scores_only`, the gradients of their queries.
  template <int Vectors>
  HEED_SIMD static void take_lanes(const KeyBlock<T>& keys, BackwardQueries<T> queries, Index lane,
                                   bool scores_only, bool guard_keys) {
    const KeyBlock<T> seen = Table<T>::seen_keys(keys, lane, Vectors * S::width);
    const Index cut = seen.cut - keys.cut;
    clear_lanes<Vectors>(queries, lane, 0, cut);
    clear_lanes<Vectors>(queries, lane, cut + seen.count, keys.count);
    queries.probabilities += cut * query_block;
    queries.grad_scores += cut * query_block;
    if (queries.capped_grads) queries.capped_grads += cut * query_block;
    const GradientTask<S, Vectors> task{seen, queries, lane};
    grad_score_block(task);
    if (scores_only) return;
    guard_keys ? add_keys_guarded(task) : add_keys(task);
  }

  HEED_SIMD static void take_queries(const KeyBlock<T>& keys, const BackwardQueries<T>& queries,
                                     bool scores_only, bool guard_keys) {
    for_each_width<Table<T>>(keys, queries.count, [&](auto vectors, Index lane) HEED_LAMBDA {
      take_lanes<vectors>(keys, queries, lane, scores_only, guard_keys);
    });
  }

  HEED_KERNEL static void grad_scores(const KeyBlock<T>& keys, const BackwardQueries<T>& queries) {
    take_queries(keys, queries, true, false);
  }

  HEED_KERNEL static void backward(const KeyBlock<T>& keys, const BackwardQueries<T>& queries,
                                   const KeyGradients<T>& gradients, bool guard_keys) {
    take_queries(keys, queries, false, guard_keys);
    const Index head_dim = (queries.head_dim + row_lanes - 1) / row_lanes * row_lanes;
    const Index value_dim = (queries.value_dim + row_lanes - 1) / row_lanes * row_lanes;
    if (queries.guard_rows && keys.words != nullptr) {
      add_rows_guarded<S>(keys, queries.probabilities, queries.grad_output, queries.count,
                          value_dim, gradients.values);
      add_rows_guarded<S>(keys, queries.grad_scores, queries.queries, queries.count, head_dim,
                          gradients.keys);
    } else {
      add_rows<S, HEED_SIMD_VECTORS>(keys, queries.probabilities, queries.grad_output,
                                     queries.count, value_dim, gradients.values, queries.coming);
      add_rows<S, HEED_SIMD_VECTORS>(keys, queries.grad_scores, queries.queries, queries.count,
                                     head_dim, gradients.keys, queries.coming);
    }
  }
};

template <class T>
const BackwardKernels<T>& backward_table() {
  using K = BackwardTable<T>;
  static constexpr BackwardKernels<T> entries{K::row_lanes, K::unpack,        K::row_dots,
                                              K::put_rows,  K::add_in_double, K::grad_scores,
                                              K::backward};
  return entries;
}
