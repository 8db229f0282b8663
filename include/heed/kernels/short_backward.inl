// SPDX-License-Identifier: MIT
// Gradients of attention for short sequences, one head per call. Included by part.inl, after
// backward.inl. docs/04-backward.md derives the five products.

template <class T>
struct ShortBackwardTable {
  using S = Lanes<T>;
  using V = typename S::V;
  static constexpr int key_rows = 8;  // like ShortForwardTable

  /// One vector of queries.
  struct Group {
    const ShortBackwardArgs<T>& head;
    Index lane;     // the first query
    Index queries;  // at most a vector
    V log_sum_exp;
    V delta;
    Range keys{0, head.key_count};   // those that some query of the group sees
    Index all_see = head.key_count;  // every query sees the keys from keys.first to this one
  };

  HEED_SIMD static void cut(Group& group) {
    const std::uint64_t* words = group.head.words;
    if (words == nullptr) return;
    const std::uint64_t whole = word_of_lanes(group.lane, group.queries);
    group.keys = seen_by(words, group.keys.end, whole);
    group.all_see = not_seen_by_all(words, group.keys, whole);
  }

  /// delta = Σ_d dO · O of the queries of a group.
  HEED_KERNEL static V deltas(const ShortBackwardArgs<T>& head, Index lane) {
    V rows[S::width];
    const Index left = head.value_dim % S::width;
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      const T* a = row_or_last(head.grad_output.data, head.grad_output.row_stride, head.query_count,
                               lane + i);
      const T* b =
          row_or_last(head.output.data, head.output.row_stride, head.query_count, lane + i);
      auto sum = S::broadcast(0);
      Index d = 0;
      for (; d + S::width <= head.value_dim; d += S::width) {
        sum = S::fma(S::load(a + d), S::load(b + d), sum);
      }
      if (left != 0) sum = S::fma(load_first<S>(a + d, left), load_first<S>(b + d, left), sum);
      rows[i] = sum;
    }
    transpose<S>(rows);
    auto total = S::broadcast(0);
    HEED_UNROLL for (int i = 0; i < S::width; ++i) total = total + rows[i];
    return total;
  }

  template <int Rows>
  HEED_SIMD static void products(const MatrixRef<T>& rows, Index key, const T* packed, Index depth,
                                 V (&sums)[Rows][1]) {
    HEED_UNROLL for (int r = 0; r < Rows; ++r) sums[r][0] = S::broadcast(0);
    multiply<S, Rows, 1>(rows.data + key * rows.row_stride, rows.row_stride, 1, packed, S::width,
                         depth, sums);
  }

  /// P = 2^(s − lse) and dS = P · (dP − delta) of the keys [key, key + Rows), 0 where masked.
  template <int Rows>
  HEED_KERNEL static void score_keys(const Group& group, Index key) {
    const auto& head = group.head;
    V sums[Rows][1];
    products(head.keys, key, head.packed_queries, head.head_dim, sums);
    const Index offset = key * query_block + group.lane;
    const auto visible = [&](int r) { return S::mask_of(head.words[key + r] >> group.lane); };
    const auto zero = S::broadcast(0);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      auto p = exp2<S>(sums[r][0] - group.log_sum_exp);
      if (key + r >= group.all_see) p = S::select(visible(r), p, zero);
      S::store(head.probabilities + offset + r * query_block, p);
    }
    products(head.values, key, head.packed_gradient, head.value_dim, sums);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const auto p = S::load(head.probabilities + offset + r * query_block);
      auto x = p * (sums[r][0] - group.delta);
      if (key + r >= group.all_see) x = S::select(visible(r), x, zero);
      S::store(head.grad_scores + offset + r * query_block, x);
    }
  }

  HEED_SIMD static void score_all(const Group& group) {
    const auto clear = [&](Index key) {
      const Index at = key * query_block + group.lane;
      S::store(group.head.probabilities + at, S::broadcast(0));
      S::store(group.head.grad_scores + at, S::broadcast(0));
    };
    const Range keys = group.keys;
    for (Index key = 0; key < keys.first; ++key) clear(key);
    for_each_micro_tile<key_rows>(keys.end - keys.first, [&](auto rows, Index key) HEED_LAMBDA {
      prefetch_coming(group.head.coming);
      score_keys<rows>(group, keys.first + key);
    });
    for (Index key = keys.end; key < group.head.key_count; ++key) clear(key);
  }

  /// P and dS of all groups, and their packed queries.
  HEED_SIMD static void score_groups(const ShortBackwardArgs<T>& head) {
    for (Index lane = 0; lane < head.query_count; lane += S::width) {
      const Index left = head.query_count - lane;
      const auto pack = [&](const MatrixRef<T>& rows, Index columns, T factor, T* packed) {
        pack_lanes<S>(rows.data + lane * rows.row_stride, rows.row_stride, 1, left, columns, factor,
                      packed, S::width);
      };
      pack(head.queries, head.head_dim, head.query_factor, head.packed_queries);
      pack(head.grad_output, head.value_dim, T{1}, head.packed_gradient);
      Group group{head, lane, left < S::width ? left : S::width, S::load(head.log_sum_exp + lane),
                  deltas(head, lane)};
      cut(group);
      score_all(group);
    }
  }

  /// grad_queries = scale · dSᵀ · K for some queries at a time, over the keys that one of them
  /// sees.
  HEED_SIMD static void put_all_queries(const ShortBackwardArgs<T>& head) {
    const RowProduct<T> product{{head.grad_scores, 1, query_block},
                                head.keys,
                                head.key_tail,
                                head.key_count,
                                head.head_dim,
                                head.grad_queries,
                                head.grad_query_row,
                                &head.scale,
                                0};
    for_each_micro_tile<micro_tile_rows>(head.query_count, [&](auto rows, Index query) HEED_LAMBDA {
      prefetch_coming(head.coming);
      const Range keys = seen_by(head.words, head.key_count, word_of_lanes(query, rows));
      put_product_rows<S, rows>(product.from(query, keys));
    });
  }

  /// A product with P or dS on its left, some keys at a time, over the queries that see one of
  /// them.
  HEED_SIMD static void put_all_keys(const ShortBackwardArgs<T>& head,
                                     const RowProduct<T>& product) {
    for_each_micro_tile<micro_tile_rows>(head.key_count, [&](auto rows, Index key) HEED_LAMBDA {
      prefetch_coming(head.coming);
      const Range queries = seeing(head.words, key, rows, head.query_count);
      put_product_rows<S, rows>(product.from(key, queries));
    });
  }

  HEED_SIMD static bool must_guard(const ShortBackwardArgs<T>& head) {
    return head.words != nullptr &&
           !(Table<T>::all_finite(head.keys, head.key_count, head.head_dim) &&
             Table<T>::all_finite(head.queries, head.query_count, head.head_dim) &&
             Table<T>::all_finite(head.grad_output, head.query_count, head.value_dim));
  }

  HEED_KERNEL static bool backward(const ShortBackwardArgs<T>& head) {
    if (must_guard(head)) return false;
    fill_tail<S>(head.keys, head.key_count, head.head_dim, head.key_tail);
    fill_tail<S>(head.queries, head.query_count, head.head_dim, head.query_tail);
    fill_tail<S>(head.grad_output, head.query_count, head.value_dim, head.gradient_tail);
    score_groups(head);
    put_all_queries(head);
    const T one = 1;
    put_all_keys(head, {{head.probabilities, query_block, 1},
                        head.grad_output,
                        head.gradient_tail,
                        head.query_count,
                        head.value_dim,
                        head.grad_values,
                        head.grad_value_row,
                        &one,
                        0});
    put_all_keys(head, {{head.grad_scores, query_block, 1},
                        head.queries,
                        head.query_tail,
                        head.query_count,
                        head.head_dim,
                        head.grad_keys,
                        head.grad_key_row,
                        &head.scale,
                        0});
    return true;
  }
};

template <class T>
ShortBackwardKernel<T> short_backward() {
  return ShortBackwardTable<T>::backward;
}
