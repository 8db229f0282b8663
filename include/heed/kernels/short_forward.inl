// SPDX-License-Identifier: MIT
// Attention of short sequences. Included by part.inl.

/// One vector of queries of one head.
template <class T>
struct QueryVector {
  using S = Lanes<T>;
  const ShortForwardArgs<T>& run;
  MatrixRef<T> keys;
  MatrixRef<T> values;
  int lane;       // the first query
  Index queries;  // at most a vector
  T* out;
  T* maximum;
  T* sum;
  const T* tail = run.tail;  // of the values, see fill_tail
  const std::uint64_t* words = run.words;
  Index count = run.key_count;    // keys from the first to the last that one of the queries sees
  Index all_see = run.key_count;  // the number of keys at the front that every query sees

  HEED_SIMD typename S::M visible(Index key) const { return S::mask_of(words[key] >> lane); }
  /// Cuts off the keys at both ends that no query of the group sees.
  HEED_SIMD void cut() {
    const std::uint64_t whole = word_of_lanes(lane, queries);
    const Range seen = seen_by(words, count, whole);
    keys = keys.from(seen.first, 0);
    values = values.from(seen.first, 0);
    tail += seen.first * S::width;
    words += seen.first;
    count = seen.end - seen.first;
    all_see = not_seen_by_all(words, {0, count}, whole);
  }
};

// Products whose right side is rows of a tensor read in place: lanes are its columns.

/// out(row, column) = factor(row) · Σ_k a(row, k) · b(k, column) + 0.
template <class T>
struct RowProduct {
  MatrixRef<T> a;  // (row, k)
  MatrixRef<T> b;  // (k, column), contiguous columns
  const T* tail;   // [k][a vector]: the columns that do not fill one, see fill_tail
  Index depth;
  Index columns;
  T* out;  // contiguous columns
  Index out_row;
  const T* factors;
  Index factor_step;  // 0: one factor for all rows

  /// The product from row `row` on, restricted to some k.
  HEED_SIMD RowProduct from(Index row, const Range& range) const {
    RowProduct part = *this;
    part.a = a.from(row, range.first);
    part.b = b.from(range.first, 0);
    part.tail += range.first * Lanes<T>::width;
    part.depth = range.end - range.first;
    part.out += row * out_row;
    part.factors += row * factor_step;
    return part;
  }
};

template <class S, int Rows, int Vectors>
HEED_SIMD void put_sums(const RowProduct<typename S::Scalar>& task, Index column, Index left,
                        typename S::V (&sums)[Rows][Vectors]) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    auto* to = task.out + r * task.out_row + column;
    const auto factor = S::broadcast(task.factors[r * task.factor_step]);
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      const auto x = sums[r][j] * factor + S::broadcast(0);
      store_upto<S>(to + j * S::width, x, Vectors > 1 ? S::width : left);
    }
  }
}

/// `Rows` rows of the product and `Vectors` vectors of columns, or the rest past those.
template <class S, int Rows, int Vectors>
HEED_KERNEL void put_product(const RowProduct<typename S::Scalar>& task, Index column) {
  typename S::V sums[Rows][Vectors] = {};
  const Index left = task.columns - column;
  const bool whole = left >= S::width;
  multiply<S, Rows, Vectors>(task.a.data, task.a.row_stride, task.a.column_stride,
                             whole ? task.b.data + column : task.tail,
                             whole ? task.b.row_stride : S::width, task.depth, sums);
  put_sums<S>(task, column, left, sums);
}

template <class S, int Rows>
HEED_SHARED void put_product_rows(const RowProduct<typename S::Scalar>& task) {
  constexpr int wide = HEED_SIMD_VECTORS;
  Index column = 0;
  for (; column + wide * S::width <= task.columns; column += wide * S::width) {
    put_product<S, Rows, wide>(task, column);
  }
  for (; wide > 2 && column + 2 * S::width <= task.columns; column += 2 * S::width) {
    put_product<S, Rows, 2>(task, column);
  }
  for (; column < task.columns; column += S::width) put_product<S, Rows, 1>(task, column);
}

// Attention of short sequences, head by head in one call. One vector of queries at a time meets the
// keys it sees, at most one block of them: scores, their maximum, probabilities, then the values,
// whose rows are read in place.

template <class T>
struct ShortForwardTable {
  using S = Lanes<T>;
  using V = typename S::V;
  // Keys at a time: with one vector of queries each, enough sums to keep the multiplier busy.
  static constexpr int key_rows = 8;

  using Group = QueryVector<T>;

  /// Scores of the keys [key, key + Rows), and the running maximum of every query.
  template <int Rows>
  HEED_KERNEL static V score_keys(const Group& group, Index key, V largest) {
    V scores[Rows][1] = {};
    const auto& keys = group.keys;
    multiply<S, Rows, 1>(keys.data + key * keys.row_stride, keys.row_stride, keys.column_stride,
                         group.run.packed, S::width, group.run.head_dim, scores);
    const auto lowest = S::broadcast(LaneTypes<T>::lowest);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      S::store(group.run.probabilities + (key + r) * S::width, scores[r][0]);
      auto x = scores[r][0];
      if (key + r >= group.all_see) x = S::select(group.visible(key + r), x, lowest);
      largest = S::max(largest, x);
    }
    return largest;
  }

  HEED_SIMD static V score_all(const Group& group) {
    V largest = S::broadcast(LaneTypes<T>::lowest);
    for_each_micro_tile<key_rows>(group.count, [&](auto rows, Index key) HEED_LAMBDA {
      if (rows == key_rows) prefetch_coming(group.run.coming);
      // Earlier vectors of queries have mostly met the keys before `lane`.
      if (rows == key_rows && group.run.coming != nullptr && key >= group.lane) {
        prefetch_rows(group.values, key, key_rows, group.run.value_dim);
      }
      largest = score_keys<rows>(group, key, largest);
    });
    return largest;
  }

  /// Probabilities of the stored scores, and the factors on the outputs.
  HEED_KERNEL static void exponentiate_all(const Group& group, V largest, T* factors) {
    const auto lowest = S::broadcast(LaneTypes<T>::lowest);
    const auto maximum = S::select(S::greater(largest, lowest), largest, lowest);
    auto total = S::broadcast(0);
    T* at = group.run.probabilities;
    Index key = 0;
    for (; key < group.all_see; ++key, at += S::width) {
      const auto p = exp2<S>(S::load(at) - maximum);
      total = total + p;
      S::store(at, p);
    }
    for (; key < group.count; ++key, at += S::width) {
      const auto x = S::load(at) - maximum;
      const auto p = exp2<S>(S::select(group.visible(key), x, S::broadcast(masked_exponent<T>)));
      total = total + p;
      S::store(at, p);
    }
    // 1 / sum; 0 for a query that saw no key, NaN for NaN.
    const auto some = S::greater(total, S::broadcast(0));
    const auto inverse = S::broadcast(1) / S::select(some, total, S::broadcast(1));
    S::store(factors, S::select(some, inverse, total));
    S::store(group.maximum, maximum);
    S::store(group.sum, total);
  }

  /// The outputs from rows of values read in place. Keys at the ends that none of some queries sees
  /// are left out, since their probabilities are 0.
  HEED_SIMD static void put_by_rows(const Group& group, const T* factors) {
    const auto& run = group.run;
    const RowProduct<T> product{{run.probabilities, 1, S::width},
                                group.values,
                                group.tail,
                                group.count,
                                run.value_dim,
                                group.out,
                                run.out_row,
                                factors,
                                1};
    for_each_micro_tile<micro_tile_rows>(group.queries, [&](auto rows, Index query) HEED_LAMBDA {
      if (rows >= 4) prefetch_coming(group.run.coming);
      const Range keys = seen_by(group.words, group.count, word_of_lanes(group.lane + query, rows));
      put_product_rows<S, rows>(product.from(query, keys));
    });
  }

  template <int Rows>
  HEED_KERNEL static void add_columns(const Group& group, Index d) {
    V sums[Rows][1] = {};
    const auto& values = group.values;
    multiply<S, Rows, 1>(values.data + d * values.column_stride, values.column_stride,
                         values.row_stride, group.run.probabilities, S::width, group.count, sums);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      S::store(group.run.output + (d + r) * S::width, sums[r][0]);
    }
  }

  /// The outputs by way of their transpose: for values of any strides, NaN and Inf.
  HEED_SIMD static void put_by_columns(const Group& group, const T* factors, bool guard) {
    const Index columns = group.run.value_dim;
    if (guard) {
      add_guarded<S>(group.values, columns, group.words, group.lane, group.count,
                     group.run.probabilities, S::width, group.run.output, S::width, false);
    } else {
      for_each_micro_tile<key_rows>(
          columns, [&](auto rows, Index d) HEED_LAMBDA { add_columns<rows>(group, d); });
    }
    unpack_lanes<S>(group.run.output, S::width, group.queries, columns, factors, group.out,
                    group.run.out_row, group.run.out_column);
  }

  /// Whether the values are finite; if the outputs are there, whether these are: 0 times a masked
  /// NaN or Inf is NaN. put_by_rows brings the same values to at least two queries at a time, which
  /// begin at an even one, so every second row tells.
  HEED_SIMD static bool values_are_finite(const Group& group, bool put) {
    const auto& run = group.run;
    if (!put) return Table<T>::all_finite(group.values, group.count, run.value_dim);
    return Table<T>::all_finite({group.out, 2 * run.out_row, 1}, (group.queries + 1) / 2,
                                run.value_dim);
  }

  /// Sets the output of a query that saw no key to 0, whatever the values are.
  HEED_SIMD static void clear_unseeing(const Group& group, const T* factors) {
    for (Index i = 0; i < group.queries; ++i) {
      if (factors[i] != 0) continue;
      for (Index d = 0; d < group.run.value_dim; ++d) {
        group.out[i * group.run.out_row + d * group.run.out_column] = 0;
      }
    }
  }

  /// The outputs of a group whose queries are packed.
  HEED_SIMD static void attend_group(Group& group) {
    const auto& run = group.run;
    if (group.words != nullptr) group.cut();
    alignas(64) T factors[S::width];
    exponentiate_all(group, score_all(group), factors);
    const bool contiguous = group.values.column_stride == 1 && run.out_column == 1;
    if (contiguous) put_by_rows(group, factors);
    const bool guard = group.all_see < group.count && !values_are_finite(group, contiguous);
    if (guard || !contiguous) put_by_columns(group, factors, guard);
    clear_unseeing(group, factors);
  }

  /// How many rows of the next head to prefetch at a time, so that none is left at the end of this
  /// one: under a causal mask, vector i of queries meets i vectors of keys, in steps, and adds
  /// values in `outputs` large micro tiles.
  HEED_SIMD static Index coming_at_once(const ShortForwardArgs<T>& run) {
    constexpr Index steps = (S::width + key_rows - 1) / key_rows, outputs = S::width / 5;
    const Index groups = (run.query_count + S::width - 1) / S::width;
    const Index times = groups * (groups + 1) / 2 * steps + groups * outputs;
    return (run.query_count + times - 1) / times;
  }
  /// The heads of a run whose numbers, of T, are read and written in place.
  struct HeadsInPlace {
    const ShortForwardArgs<T>& run;
    MatrixRef<T> queries = {}, keys = {}, values = {};
    T* out = nullptr;

    HEED_SIMD void take(Index head, Index key_head) {
      queries = run.queries.ahead(head * run.query_head);
      keys = run.keys.ahead(key_head * run.key_head);
      values = run.values.ahead(key_head * run.value_head);
      out = run.out + head * run.out_head;
    }
    HEED_SIMD T* out_of(Index query) const { return out + query * run.out_row; }
    HEED_SIMD void pack(Index query, Index count) const {
      const auto* from = queries.data + query * queries.row_stride;
      pack_lanes<S>(from, queries.row_stride, queries.column_stride, count, run.head_dim,
                    run.query_factor, run.packed, S::width);
    }
    HEED_SIMD void put(Index, Index) const {}
    HEED_SIMD void announce() const {
      announce_next(run, queries, keys, values, MatrixRef<T>{out, run.out_row, 1});
    }
  };

  /// The rows of the head after one with these operands, if heads lie one after the other.
  template <class Number>
  HEED_SIMD static void announce_next(const ShortForwardArgs<T>& run,
                                      const MatrixRef<Number>& queries,
                                      const MatrixRef<Number>& keys,
                                      const MatrixRef<Number>& values,
                                      const MatrixRef<Number>& out) {
    auto& coming = *run.coming;
    coming.size = 0;
    coming.count = 0;
    coming.add(queries.ahead(run.query_head), run.head_dim, run.query_count);
    coming.add(keys.ahead(run.key_head), run.head_dim, run.key_count);
    coming.add(values.ahead(run.value_head), run.value_dim, run.key_count);
    coming.add(out.ahead(run.out_head), run.value_dim, run.query_count);
  }

  template <class Heads>
  HEED_SIMD static void attend_heads(const ShortForwardArgs<T>& run, Heads heads) {
    if (run.coming != nullptr) run.coming->at_once = coming_at_once(run);
    for (Index head = 0; head < run.heads; ++head) {
      heads.take(head, (run.first_head + head) / run.sharing - run.first_head / run.sharing);
      const MatrixRef<T>&keys = heads.keys, &values = heads.values;
      if (values.column_stride == 1) fill_tail<S>(values, run.key_count, run.value_dim, run.tail);
      if (run.coming != nullptr) heads.announce();
      for (Index lane = 0; lane < run.query_count; lane += S::width) {
        const Index left = run.query_count - lane, count = left < S::width ? left : S::width;
        Group group{run,
                    keys,
                    values,
                    static_cast<int>(lane),
                    count,
                    heads.out_of(lane),
                    run.maximum + head * query_block + lane,
                    run.sum + head * query_block + lane};
        heads.pack(lane, count);
        attend_group(group);
        heads.put(lane, count);
      }
    }
  }

  HEED_KERNEL static void attend(const ShortForwardArgs<T>& run) {
    attend_heads(run, HeadsInPlace{run});
  }
};

template <class T>
ShortForwardKernel<T> short_forward() {
#if HEED_SIMD_BYTES == 16 && defined(__x86_64__) && !HEED_SIMD_ALL_KERNELS
  return nullptr;  // to save compile time, header-only programs have none without AVX2
#else
  return ShortForwardTable<T>::attend;
#endif
}
