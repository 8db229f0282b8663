// SPDX-License-Identifier: MIT
// The counterpart of attend_keys.inl for bfloat16 pairs: a few queries over a block of keys, with
// keys in the lanes, then columns of values. Included by part.inl, after pairs.inl.

template <class T>
struct PairDecodeTable {
  using S = Lanes<T>;
  using P = Pairs<T>;
  static constexpr Index lanes = strip_stride<S>;

  template <int Rows, int Vectors>
  HEED_KERNEL static void score_rows(const PairRows<T>& rows, Index row, Index key) {
    const Index strip = key / lanes * lanes, within = key % lanes;
    typename S::V scores[Rows][Vectors] = {};
    multiply_pairs<P, Rows, Vectors>(rows.rows + row * 2 * rows.depth, 2 * rows.depth, 2,
                                     rows.packed + strip * 2 * rows.depth + 2 * within, 2 * lanes,
                                     rows.depth, scores);
    store_sums<S>(scores, rows.scores + score_index(rows, row, key), lanes);
  }
  template <int Vectors>
  HEED_SIMD static void score_lanes(const PairRows<T>& rows, Index key) {
    for_each_micro_tile<6>(rows.count, [&](auto some, Index row) HEED_LAMBDA {
      score_rows<some, Vectors>(rows, row, key);
    });
  }
  HEED_SIMD static void score_packed(const PairKeys& keys, const PairRows<T>& rows) {
    PairTable<T>::pack(keys.keys, keys.count, rows.head_dim, rows.packed);
    Index key = 0;
    for (; key + lanes <= keys.count; key += lanes) score_lanes<HEED_SIMD_VECTORS>(rows, key);
    for (; key < keys.count; key += S::width) score_lanes<1>(rows, key);
  }

  /// The scores over `Vectors` vectors of keys whose first row is at `first`, of `columns` columns,
  /// whole vectors. Keys are transposed half a vector of columns at a time, so that fewer
  /// instructions are between the products of one part and of the next. A sum waits for the one
  /// before it, so a single row takes two vectors of keys; several rows wait less, and from memory
  /// took up to 1.2 times as long with 32 keys at a time.
  template <int Rows, int Vectors, bool Near>
  HEED_KERNEL static void score_transposed(const std::uint16_t* first, Index stride,
                                           const PairRows<T>& rows, Index key,
                                           const LinesAhead& lines, Index columns) {
    constexpr int half = S::width / 2;
    auto ahead = StepAhead<Near>::of(lines, first);
    const std::uint16_t* row[Rows];
    typename S::V scores[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      row[r] = row_or_last(rows.rows, 2 * rows.depth, rows.count, r);
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) scores[r][j] = S::broadcast(0);
    }
    for (Index d = 0; d < columns; d += P::step) {
      const std::uint16_t* next = first + d;  // the row of which a line is prefetched
      HEED_UNROLL for (int part = 0; part < 2; ++part) {
        const Index at = d + part * S::width;
        typename S::V pairs[Vectors][half];
        const std::uint16_t* from = first + at;
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          from = load_transposed<S>(from, stride, pairs[j]);
        }
        HEED_UNROLL for (int i = 0; i < half; ++i) {
          HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
            ahead.fetch(next);
            next += stride;
            asm("" : "+r"(next));  // as in load_transposed
          }
          HEED_UNROLL for (int r = 0; r < Rows; ++r) {
            const auto query = P::spread(row[r] + at + 2 * i);
            HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
              scores[r][j] = P::add_products(query, (typename P::V)pairs[j][i], scores[r][j]);
            }
          }
        }
      }
    }
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      if (r >= rows.count) break;
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        S::store(rows.scores + score_index(rows, r, key + j * S::width), scores[r][j]);
      }
    }
  }

  /// Adds the products of the columns from `d` on, fewer than a vector has, to the stored scores.
  HEED_KERNEL static void add_last_columns(const std::uint16_t* first, Index stride,
                                           const PairRows<T>& rows, Index key, Index d) {
    const Index depth = 2 * rows.depth;
    typename S::V columns[S::width];
    for_each_row<S::width>(first + d, stride, [&](int i, const std::uint16_t* at) HEED_LAMBDA {
      columns[i] = (typename S::V)P::load_upto(at, depth - d);
    });
    transpose<S>(columns);
    T spill[S::width * S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) S::store(spill + i * S::width, columns[i]);
    for (Index r = 0; r < rows.count; ++r) {
      T* const at = rows.scores + score_index(rows, r, key);
      auto scores = S::load(at);
      for (Index i = d; i < depth; i += 2) {
        const auto column = (typename P::V)S::load(spill + (i - d) / 2 * S::width);
        scores = P::add_products(P::spread(rows.rows + r * depth + i), column, scores);
      }
      S::store(at, scores);
    }
  }

  /// Copies the last keys, fewer than a vector, and repeats the last of them.
  HEED_SIMD static const std::uint16_t* last_keys(const PairKeys& keys, const PairRows<T>& rows,
                                                  Index key) {
    const Index depth = 2 * rows.depth;
    for (int i = 0; i < S::width; ++i) {
      const auto* from = row_or_last(keys.keys.data, keys.keys.row_stride, keys.count, key + i);
      for (Index d = 0; d < depth; d += P::step) {  // a row ends where the next one begins
        P::store(rows.packed + i * depth + d, P::load_upto(from + d, depth - d));
      }
    }
    return rows.packed;
  }

  /// The scores of a step of keys, `Vectors` of them, whose rows begin at `at`.
  template <int Rows, int Vectors, bool Near>
  HEED_SIMD static void score_step(const PairKeys& keys, const PairRows<T>& rows, Index key,
                                   const std::uint16_t* at, Index stride) {
    constexpr Index step = Vectors * S::width;
    const Index depth = 2 * rows.depth;
    const Index whole = depth - depth % P::step;  // columns that fill vectors
    const auto lines =
        lines_beyond(keys.keys, depth, keys.count, key, step, rows.next, rows.next_columns);
    score_transposed<Rows, Vectors, Near>(at, stride, rows, key, lines, whole);
    for (Index j = 0; j < step && whole != depth; j += S::width) {
      add_last_columns(at + j * stride, stride, rows, key + j, whole);
    }
  }
  /// The same of as many steps as there are from `key` on; returns where they end.
  template <int Rows, int Vectors, bool Near>
  HEED_SIMD static Index score_steps(const PairKeys& keys, const PairRows<T>& rows, Index key) {
    constexpr Index step = Vectors * S::width;
    const MatrixRef<std::uint16_t>& from = keys.keys;
    for (; key + step <= keys.count; key += step) {
      score_step<Rows, Vectors, Near>(keys, rows, key, from.data + key * from.row_stride,
                                      from.row_stride);
    }
    return key;
  }
  /// The scores of up to decoded_at_once rows, from keys read in place. Processors that prefetch
  /// near do not follow the rows of two vectors of keys.
  HEED_KERNEL static void score_lying(const PairKeys& keys, const PairRows<T>& rows) {
    with_near(rows, [&](auto near) HEED_LAMBDA {
      constexpr int vectors = single_row == 1 && !near ? 2 : 1;
      Index key = 0;
      if (rows.count == 1) key = score_steps<single_row, vectors, near>(keys, rows, key);
      key = score_steps<decoded_at_once, 1, near>(keys, rows, key);
      if (key < keys.count) {
        const std::uint16_t* last = last_keys(keys, rows, key);
        score_step<decoded_at_once, 1, near>(keys, rows, key, last, 2 * rows.depth);
      }
    });
  }

  HEED_SIMD static bool seen(const PairRows<T>& rows, Index row, Index key) {
    return rows.visible == nullptr || (rows.bits(row, key) & 1) != 0;
  }

  /// The probabilities of a row relative to `maximum`, as bfloat16 and, in `weights`, as T.
  HEED_KERNEL static void weigh_row(Index count, const PairRows<T>& rows, Index row, T maximum,
                                    T* weights) {
    std::uint16_t* out = rows.probabilities + row * row_keys;
    const auto base = PairTask<T, 1>::base_of(S::broadcast(maximum));
    for (Index key = 0; key < count; key += S::width) {
      auto weight = bfloat16_weight<true, S>(S::fma(
          S::load(rows.scores + score_index(rows, row, key)), S::broadcast(rows.factor), base));
      if (rows.visible) {
        weight = S::select(S::mask_of(rows.bits(row, key)), weight, S::broadcast(0));
      }
      S::store(weights + key, weight);
      store_lower_halves(out + key, (WholeWords)weight >> 16);
    }
    if (count % 2 != 0) out[count] = 0;
  }

  /// The softmax of up to decoded_at_once rows.
  HEED_SIMD static void exponentiate(Index count, const PairRows<T>& rows, Index row, Index some) {
    T weights[decoded_at_once * row_keys], totals[decoded_at_once];
    for (Index r = 0; r < some; ++r) {
      weigh_row(count, rows, row + r, rows.maximum[row + r], weights + r * row_keys);
    }
    sum_rows(weights, some, count, totals);
    for (Index r = 0; r < some; ++r) {
      if (totals[r] > lazy_limit<T>) {
        rescale_row(count, rows, row + r);
      } else {
        rows.sum[row + r] += totals[r];
      }
    }
  }

  HEED_SIMD static void exponentiate_all(Index count, const PairRows<T>& rows) {
    for (Index row = 0; row < rows.count; row += decoded_at_once) {
      const Index left = rows.count - row;
      exponentiate(count, rows, row, left < decoded_at_once ? left : decoded_at_once);
    }
  }

  /// Moves the maximum of a row to that of this block.
  HEED_KERNEL static void rescale_row(Index count, const PairRows<T>& rows, Index row) {
    T found = LaneTypes<T>::lowest;
    for (Index key = 0; key < count; key += S::width) {
      const T* at = rows.scores + score_index(rows, row, key);
      for (Index i = 0; i < S::width && key + i < count; ++i) {
        const T x = at[i] * rows.factor;
        if (seen(rows, row, key + i) && !(found > x)) found = x;
      }
    }
    T maximum[S::width], weights[row_keys], total[decoded_at_once];
    S::store(maximum, pair_maximum<S>(S::broadcast(rows.maximum[row]), S::broadcast(found)));
    const auto factor = move_maximum<S>(rows, row, maximum[0]);
    weigh_row(count, rows, row, maximum[0], weights);
    sum_rows(weights, 1, count, total);
    rows.sum[row] = rescaled_sum<S>(rows.sum[row], factor, total[0]);
  }

  /// output += probabilities · values for some rows and columns.
  template <int Rows, int Vectors>
  HEED_KERNEL static void add_rows(const PairKeys& keys, const PairRows<T>& rows, Index row,
                                   Index d) {
    T* out = rows.output + row * rows.output_stride + d;
    typename S::V sums[Rows][Vectors];
    load_sums<S>(sums, out, rows.output_stride);
    multiply_pairs<P, Rows, Vectors>(rows.probabilities + row * row_keys, row_keys, 2,
                                     keys.values + 2 * d, 2 * rows.value_dim, (keys.count + 1) / 2,
                                     sums);
    store_sums<S>(sums, out, rows.output_stride);
  }
  template <int Vectors>
  HEED_SIMD static void add_columns(const PairKeys& keys, const PairRows<T>& rows, Index d) {
    Index row = 0;
    for (; row + 6 <= rows.count; row += 6) add_rows<6, Vectors>(keys, rows, row, d);
    for (; row + 2 <= rows.count; row += 2) add_rows<2, Vectors>(keys, rows, row, d);
    if (row < rows.count) add_rows<1, Vectors>(keys, rows, row, d);
  }

  /// Like add_pairs_guarded.
  HEED_KERNEL static void add_guarded(const PairKeys& keys, const PairRows<T>& rows) {
    for (Index row = 0; row < rows.count; ++row) {
      for (Index d = 0; d < rows.value_dim; d += S::width) {
        T* at = rows.output + row * rows.output_stride + d;
        auto sum = S::load(at);
        for (Index key = 0; key < keys.count; key += 2) {
          const bool low = seen(rows, row, key);
          const bool high = key + 1 < keys.count && seen(rows, row, key + 1);
          const std::int32_t halves = (low ? 0xffff : 0) | (high ? ~0xffff : 0);
          const auto values = P::load(keys.values + key * rows.value_dim + 2 * d) & halves;
          sum = P::add_products(P::spread(rows.probabilities + row * row_keys + key), values, sum);
        }
        S::store(at, sum);
      }
    }
  }

  /// output += probabilities · values for some rows, the keys [key, end), and the columns of
  /// `Lines` lines, of which the last may be a part, from values read in place.
  template <int Rows, int Lines, class Ahead>
  HEED_KERNEL static void add_lying_rows(const PairKeys& keys, const PairRows<T>& rows, Index row,
                                         Index key, Index end, Index d, Ahead& step_ahead) {
    const Index left = Lines > 1 ? Lines * P::step : rows.value_dim - d;
    const bool whole = left > S::width;  // the second vector of sums too
    const auto load = [&](const std::uint16_t* at)
                          HEED_LAMBDA { return Lines > 1 ? P::load(at) : P::load_upto(at, left); };
    auto ahead = step_ahead;
    const std::uint16_t* weights[Rows];
    T* out[Rows];
    typename S::V sums[Rows][2 * Lines];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = row + r < rows.count ? row + r : rows.count - 1;
      weights[r] = rows.probabilities + at * row_keys;
      out[r] = rows.output + at * rows.output_stride + d;
      HEED_UNROLL for (int j = 0; j < 2 * Lines; ++j) {
        sums[r][j] = j == 0 || whole ? S::load(out[r] + j * S::width) : S::broadcast(0);
      }
    }
    const Index stride = keys.lying.row_stride;
    const std::uint16_t* low = keys.lying.data + key * stride + d;
    for (; key < end; key += 2, low += 2 * stride) {
      const bool both = key + 1 < end;
      typename P::V columns[2 * Lines];
      HEED_UNROLL for (int j = 0; j < Lines; ++j) {
        const auto first = load(low + j * P::step);
        const auto second = both ? load(low + stride + j * P::step) : typename P::V{};
        columns[2 * j] = P::first_zipped(first, second);
        columns[2 * j + 1] = P::second_zipped(first, second);
      }
      HEED_UNROLL for (int j = 0; j < 2 * Lines; ++j) {
        if (row == 0) ahead.fetch(low + j / Lines * stride + j % Lines * P::step);
      }
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        const auto weight = P::spread(weights[r] + key);
        HEED_UNROLL for (int j = 0; j < 2 * Lines; ++j) {
          sums[r][j] = P::add_products(weight, columns[j], sums[r][j]);
        }
      }
    }
    step_ahead = ahead;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < 2 * Lines; ++j) {
        if (j == 0 || whole) S::store(out[r] + j * S::width, sums[r][j]);
      }
    }
  }
  template <int Lines, class Ahead>
  HEED_SIMD static void add_lying_columns(const PairKeys& keys, const PairRows<T>& rows, Index key,
                                          Index end, Index d, Ahead& ahead) {
    if (rows.count == 1) {
      return add_lying_rows<single_row, Lines>(keys, rows, 0, key, end, d, ahead);
    }
    for (Index row = 0; row < rows.count; row += decoded_at_once) {
      add_lying_rows<decoded_at_once, Lines>(keys, rows, row, key, end, d, ahead);
    }
  }
  /// The same for a single row that reads whole rows of values in the order of memory: processors
  /// that do not prefetch near foresee that. False, and nothing done, where it does not.
  HEED_SIMD static bool add_foreseen(const PairKeys& keys, const PairRows<T>& rows) {
    const bool in_order = rows.count == 1 && keys.lying.row_stride == rows.value_dim;
    if (single_row > 1 || rows.near || !in_order) return false;
    NothingAhead nothing;
    if (rows.value_dim == 2 * P::step) {
      add_lying_rows<single_row, 2>(keys, rows, 0, 0, keys.count, 0, nothing);
    } else if (rows.value_dim == 4 * P::step) {
      add_lying_rows<single_row, 4>(keys, rows, 0, 0, keys.count, 0, nothing);
    } else {
      return false;
    }
    return true;
  }
  /// output += probabilities · values, from values read in place.
  HEED_SIMD static void add_lying(const PairKeys& keys, const PairRows<T>& rows) {
    if (add_foreseen(keys, rows)) return;
    const auto& lying = keys.lying;
    // The values of a step are read in the order of memory, or stay in the first-level cache until
    // all their columns are added.
    const Index step = rows.value_dim <= 2 * P::step ? 3 * S::width : S::width;
    for (Index key = 0; key < keys.count; key += step) {
      const Index end = key + step < keys.count ? key + step : keys.count;
      const auto lines =
          lines_beyond(lying, rows.value_dim, keys.count, key, step, rows.next, rows.next_columns);
      with_near(rows, [&](auto near) HEED_LAMBDA {
        auto ahead = StepAhead<near>::of(lines, lying.data + key * lying.row_stride);
        Index d = 0;
        for (; d + 2 * P::step <= rows.value_dim; d += 2 * P::step) {
          add_lying_columns<2>(keys, rows, key, end, d, ahead);
        }
        for (; d < rows.value_dim; d += P::step) {
          add_lying_columns<1>(keys, rows, key, end, d, ahead);
        }
      });
    }
  }

  HEED_KERNEL static void score(const PairKeys& keys, const PairRows<T>& rows) {
    if (keys.words == nullptr && rows.count <= decoded_at_once) {
      score_lying(keys, rows);
    } else {
      score_packed(keys, rows);
    }
  }

  HEED_KERNEL static void attend(const PairKeys& keys, const PairRows<T>& rows) {
    exponentiate_all(keys.count, rows);
    if (keys.lying.data != nullptr) return add_lying(keys, rows);
    if (keys.guard_values && rows.visible != nullptr) return add_guarded(keys, rows);
    Index d = 0;
    for (; d + lanes <= rows.value_dim; d += lanes) add_columns<HEED_SIMD_VECTORS>(keys, rows, d);
    for (; d < rows.value_dim; d += S::width) add_columns<1>(keys, rows, d);
  }
};

template <class T>
const PairKernels<T>* pair_table() {
  using K = PairTable<T>;
  using D = PairDecodeTable<T>;
  constexpr Index any = std::numeric_limits<Index>::max();
  static constexpr PairKernels<T> entries{
      2,         1,         any,     K::pack, K::zip,   K::zip,   K::all_finite,
      K::narrow, K::attend, nullptr, nullptr, D::score, D::attend};
  return &entries;
}
