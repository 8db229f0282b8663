// SPDX-License-Identifier: MIT
// The entries of BackwardKernels for one instruction set. Included by part.inl.

template <class T>
struct BackwardTable {
  using S = Lanes<T>;
  static constexpr int vectors = HEED_SIMD_VECTORS;
  static constexpr int lanes = vectors * S::width;
  // Tiles of one vector finish rows where four stand side by side.
  static constexpr int row_lanes = vectors == 4 ? S::width : lanes;

  HEED_KERNEL static void unpack(const T* packed, Index count, Index columns, T factor, T* rows,
                                 Index row_stride) {
    alignas(64) T factors[S::width];
    S::store(factors, S::broadcast(factor));
    for (Index lane = 0; lane < count; lane += S::width) {
      unpack_lanes<S>(packed + lane, query_block, count - lane, columns, factors,
                      rows + lane * row_stride, row_stride, 1);
    }
  }

  HEED_KERNEL static void row_dots(const T* a, const T* b, Index row_stride, Index rows, T* out) {
    for (Index row = 0; row < rows; ++row) {
      auto sums = S::broadcast(0);
      for (Index column = 0; column < row_stride; column += S::width) {
        const Index at = row * row_stride + column;
        sums = S::fma(S::load(a + at), S::load(b + at), sums);
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

  /// P = dS = 0 for the keys [first, end).
  template <int Vectors>
  HEED_SIMD static void clear_lanes(const BackwardQueries<T>& queries, Index lane, Index first,
                                    Index end) {
    for (Index key = first; key < end; ++key) {
      for (int j = 0; j < Vectors; ++j) {
        const Index at = key * query_block + lane + j * S::width;
        S::store(queries.probabilities + at, S::broadcast(0));
        S::store(queries.grad_scores + at, S::broadcast(0));
      }
    }
  }

  /// P and dS where the lanes [lane, lane + Vectors · width) meet the keys that one of them sees,
  /// and, unless `scores_only`, the gradients of their queries.
  template <int Vectors>
  HEED_SIMD static void take_lanes(const KeyBlock<T>& keys, BackwardQueries<T> queries, Index lane,
                                   bool scores_only, bool guard_keys) {
    const KeyBlock<T> seen = Table<T>::seen_by(keys, lane, Vectors * S::width);
    const Index cut = seen.cut - keys.cut;
    clear_lanes<Vectors>(queries, lane, 0, cut);
    clear_lanes<Vectors>(queries, lane, cut + seen.count, keys.count);
    queries.probabilities += cut * query_block;
    queries.grad_scores += cut * query_block;
    const GradientTask<S, Vectors> task{seen, queries, lane};
    grad_score_block(task);
    if (scores_only) return;
    if (guard_keys) {
      add_keys_guarded(task);
    } else {
      add_keys(task);
    }
  }

  HEED_SIMD static void take_queries(const KeyBlock<T>& keys, const BackwardQueries<T>& queries,
                                     bool scores_only, bool guard_keys) {
    for (Index tile = 0; tile < queries.count; tile += lanes) {
      const Index left = queries.count - tile < lanes ? queries.count - tile : lanes;
      if constexpr (vectors == 4) {
        if (Table<T>::narrow_pays(keys, tile, left)) {
          for (Index lane = tile; lane < tile + left; lane += S::width) {
            take_lanes<1>(keys, queries, lane, scores_only, guard_keys);
          }
          continue;
        }
      }
      take_lanes<vectors>(keys, queries, tile, scores_only, guard_keys);
    }
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
      add_rows<S, vectors>(keys, queries.probabilities, queries.grad_output, queries.count,
                           value_dim, gradients.values);
      add_rows<S, vectors>(keys, queries.grad_scores, queries.queries, queries.count, head_dim,
                           gradients.keys);
    }
  }
};

/// The set's backward kernels behind pointers.
template <class T>
const BackwardKernels<T>& backward_table() {
  using K = BackwardTable<T>;
  static constexpr BackwardKernels<T> entries{K::row_lanes, K::unpack,      K::row_dots,
                                              K::put_rows,  K::grad_scores, K::backward};
  return entries;
}
