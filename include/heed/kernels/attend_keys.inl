// SPDX-License-Identifier: MIT
// Attention of a few queries over a block of keys, with keys in the lanes. Included by part.inl.

/// Number of query rows that meet a group of keys or values at a time.
inline constexpr int decoded_at_once = 4;
/// The same for a single row. To save compile time, header-only programs have no such kernels.
inline constexpr int single_row = HEED_SIMD_ALL_KERNELS ? 1 : decoded_at_once;
/// The same for three rows, as many as query heads share a key head in small models.
inline constexpr int three_rows =
    HEED_SIMD_ALL_KERNELS && HEED_SIMD_BYTES == 64 ? 3 : decoded_at_once;

/// Where the score of a row and a key is in DecodedRows::scores.
template <class T>
HEED_SIMD Index score_index(const DecodedRows<T>& rows, Index row, Index key) {
  constexpr Index lanes = strip_stride<Lanes<T>>;
  return (key / lanes * rows.count + row) * lanes + key % lanes;
}

/// Sums `count` rows of row_keys numbers, key by key, side by side, since each addition waits for
/// the one before it. Meanwhile half as many lines as keys are prefetched. A single row is summed
/// in so few instructions that the processor begins with the values behind it.
template <class T, class Ahead = NothingAhead>
HEED_SIMD void sum_rows(const T* rows, Index count, Index keys, T (&totals)[decoded_at_once],
                        Ahead ahead = {}) {
  if (std::is_same_v<Ahead, NothingAhead> && count == 1) {
    T total = 0;
    Index key = 0;
    for (; key + 8 <= keys; key += 8) {
      HEED_UNROLL for (int i = 0; i < 8; ++i) total += rows[key + i];
    }
    for (; key < keys; ++key) total += rows[key];
    totals[0] = total;
    return;
  }
  const T* at[decoded_at_once];
  HEED_UNROLL for (int r = 0; r < decoded_at_once; ++r) {
    at[r] = row_or_last(rows, row_keys, count, r);
    totals[r] = 0;
  }
  for (Index key = 0; key < keys; ++key) {
    HEED_UNROLL for (int r = 0; r < decoded_at_once; ++r) totals[r] += at[r][key];
    if (key % 2 == 0) ahead.fetch_line();
  }
}

// What is prefetched: lines_after and lines_during_values of attend_queries.inl say what is read
// later.

/// What decoding prefetches in a step. Near: what lines_beyond says, into the first-level cache, in
/// the order of memory; see prefetches_near.
template <bool Near>
struct StepAhead {
  LinesAhead lines;

  /// For the `step` rows at `row` of `count`, behind the last of which come `next`.
  template <class Number, class T>
  HEED_SIMD static StepAhead of(const QueryRows<T>&, const LinesAhead& lines,
                                const MatrixRef<Number>&, Index, Index, Index, Index,
                                const MatrixRef<Number>&) {
    return {lines};
  }
  template <class Number>
  HEED_SIMD static StepAhead of(const LinesAhead& lines, const Number*) {
    return {lines};
  }
  HEED_SIMD static StepAhead none(const void* place) { return {LinesAhead::none(place)}; }
  /// Some lines, while as many from `place` on are read.
  template <int Lines = 1>
  HEED_SIMD void fetch(const void*) {
    HEED_UNROLL for (int i = 0; i < Lines; ++i) lines.fetch_line();
  }
  /// A line for each of some rows, `stride` apart. Before these are loaded: between the loads it
  /// took up to 1.15 times as long from memory.
  template <int Rows, class Number>
  HEED_SIMD void fetch_rows(const Number*, Index) {
    for (int i = 0; i < Rows; ++i) lines.fetch_line();
  }
};
/// Otherwise, into the second-level cache, what lies there in the place of what is read, or, into
/// the first, what lies there in the next step, or both; see prefetches_soon.
template <>
struct StepAhead<false> {
  std::uintptr_t later = 0;  // from a place to what is read later; 0: not prefetched
  std::uintptr_t soon = 0;   // to what is read in the next step
  static constexpr Index most_soon = Index{16} << 10;  // bytes: a third of a first-level cache

  template <class Number, class T>
  HEED_SIMD static StepAhead of(const QueryRows<T>& what, const LinesAhead& lines,
                                const MatrixRef<Number>& rows, Index columns, Index count,
                                Index row, Index step, const MatrixRef<Number>& next) {
    const Number* first = rows.data + row * rows.row_stride;
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    StepAhead ahead{lines.at - at};
    if (!what.soon || step * columns * Index{sizeof(Number)} > most_soon) return ahead;
    const auto bytes = static_cast<std::uintptr_t>(step * rows.row_stride) * sizeof(Number);
    ahead.soon = bytes;
    if (row + step >= count && next.data != nullptr) {
      ahead.soon = reinterpret_cast<std::uintptr_t>(next.data) - at;
    }
    ahead.later = what.later ? ahead.later + bytes : 0;
    return ahead;
  }
  /// For the step that begins at `first`.
  template <class Number>
  HEED_SIMD static StepAhead of(const LinesAhead& lines, const Number* first) {
    return {lines.at - reinterpret_cast<std::uintptr_t>(first)};
  }
  HEED_SIMD static StepAhead none(const void*) { return {}; }

  template <int Level>
  HEED_SIMD static void fetch_at(const void* place, std::uintptr_t offset) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(place) + offset;
    const auto* there = reinterpret_cast<const void*>(address);  // NOLINT: it may end beyond
    __builtin_prefetch(there, 0, Level);
  }
  template <int Lines = 1>
  HEED_SIMD void fetch(const void* place) {
    if (soon != 0) {
      HEED_UNROLL for (unsigned i = 0; i < Lines; ++i) fetch_at<3>(place, soon + 64 * i);
    }
    if (later != 0) {
      HEED_UNROLL for (unsigned i = 0; i < Lines; ++i) fetch_at<2>(place, later + 64 * i);
    }
  }
  template <int Rows, class Number>
  HEED_SIMD void fetch_rows(const Number* place, Index stride) {
    if (soon != 0) {
      for_each_row<Rows>(place, stride,
                         [&](int, const Number* at) HEED_LAMBDA { fetch_at<3>(at, soon); });
    }
    if (later != 0) {
      for_each_row<Rows>(place, stride,
                         [&](int, const Number* at) HEED_LAMBDA { fetch_at<2>(at, later); });
    }
  }
};
/// Calls run(std::bool_constant<Near>()); the processors that prefetch near have these vectors.
template <class Rows, class Run>
HEED_SIMD void with_near(const Rows& rows, const Run& run) {
  if constexpr (HEED_SIMD_BYTES == 64) {
    if (rows.near) return run(std::true_type());
  }
  run(std::false_type());
}

template <class T>
struct DecodeScores {
  using S = Lanes<T>;
  static constexpr Index lanes = strip_stride<S>;
  // To save compile time, header-only programs transpose the keys of any rows on the fastest set
  // only, and those of one row with AVX2.
  static constexpr bool transposes_keys =
      HEED_SIMD_BYTES == 64 || (HEED_SIMD_ALL_KERNELS && micro_tile_rows > 2);
  static constexpr bool transposes_one = transposes_keys || HEED_SIMD_BYTES == 32;
  static constexpr Index transposed_keys = fewest_vectors * S::width;  // at a time
  // How many rows, at most, meet transposed keys while these are in registers. To save compile
  // time, header-only programs have no kernel of more than four.
  static constexpr int most_rows =
      HEED_SIMD_BYTES == 64 && HEED_SIMD_ALL_KERNELS ? rows_of<1> : decoded_at_once;

  /// How many of `count` rows meet keys while these are transposed. The others meet packed keys in
  /// micro tiles of eight rows, if the first ones leave a multiple of eight: a smaller one would
  /// wait for its own sums.
  HEED_SIMD static Index rows_of_lying(Index count) {
    if (HEED_SIMD_BYTES != 64) return count < most_rows ? count : most_rows;
    const Index left = 1 + (count - 1) % rows_of<1>;
    return left < most_rows ? left : most_rows;
  }

  /// Scores of the first `Rows` rows over one vector of keys. The keys are transposed in registers,
  /// width × width numbers at a time, and kept in rows.packed if more rows follow. More vectors at
  /// a time would read more rows at a time than prefetchers of processors follow.
  template <int Rows, bool Near>
  HEED_KERNEL static void score_transposed(const KeyBlock<T>& keys, const QueryRows<T>& rows,
                                           Index key) {
    const Index stride = keys.keys.row_stride;
    const T* first = keys.keys.data + key * stride;
    const T* row[Rows];
    typename S::V scores[Rows];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      row[r] = row_or_last(rows.rows, rows.head_dim, rows.count, r);
      scores[r] = S::broadcast(0);
    }
    T* packed = packed_at(rows, key);
    auto ahead = StepAhead<Near>::of(rows, lines_after(keys, rows, key, S::width), keys.keys,
                                     rows.head_dim, keys.count, key, S::width, rows.next);
    Index d = 0;
    for (; d + S::width <= rows.head_dim; d += S::width) {
      ahead.template fetch_rows<S::width>(first + d, stride);
      typename S::V transposed[S::width];
      const auto use = [&](int i, typename S::V column) HEED_LAMBDA {
        transposed[i] = column;
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          scores[r] = S::fma(S::broadcast(row[r][d + i]), column, scores[r]);
        }
      };
      NothingAhead nothing;  // `ahead` has its own place and level
      // A single row, by halves: 0.9 of the time within caches of an Intel, 1.0 on a Zen 4.
      if (Rows > 1 || (!Near && rows.soon)) {
        each_column<S, true>(first + d, stride, nothing, use);
      } else {
        each_column<S, false>(first + d, stride, nothing, use);
      }
      if (rows.count > Rows) {
        HEED_UNROLL for (int i = 0; i < S::width; ++i) {
          S::store(packed + (d + i) * lanes, transposed[i]);
        }
      }
    }
    if (d < rows.head_dim) {
      ahead.template fetch_rows<S::width>(first + d, stride);
      pack_last(first + d, stride, rows.head_dim - d, packed + d * lanes);
      add_last<Rows>(packed, rows.head_dim, d, row, scores);
    }
    T* to = rows.scores + score_index(rows, 0, key);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      if (r < rows.count) S::store(to + r * lanes, scores[r]);
    }
  }

  /// Where the keys of the vector that begins at `key` are packed.
  HEED_SIMD static T* packed_at(const QueryRows<T>& rows, Index key) {
    return rows.packed + key / lanes * lanes * rows.head_dim + key % lanes;
  }

  /// Packs the last `left` columns of one vector of keys, fewer than it has lanes.
  HEED_KERNEL static void pack_last(const T* first, Index stride, Index left, T* packed) {
    typename S::V transposed[S::width];
    for_each_row<S::width>(first, stride, [&](int i, const T* at) HEED_LAMBDA {
      transposed[i] = load_first<S>(at, left);
    });
    transpose<S>(transposed);
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      if (i < left) S::store(packed + i * lanes, transposed[i]);
    }
  }
  /// Adds the products of the packed columns from `d` on, fewer than a vector has lanes.
  template <int Rows>
  HEED_SIMD static void add_last(const T* packed, Index head_dim, Index d,
                                 const T* const (&row)[Rows], typename S::V (&scores)[Rows]) {
    for (; d < head_dim; ++d) {
      const auto column = S::load(packed + d * lanes);
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        scores[r] = S::fma(S::broadcast(row[r][d]), column, scores[r]);
      }
    }
  }

  /// The task with keys and queries swapped: the scores of the rows from `row` on over
  /// `fewest_vectors` vectors of packed keys.
  HEED_SIMD static StripTask<S, fewest_vectors> packed_task(const KeyBlock<T>& keys,
                                                            const QueryRows<T>& rows, Index row,
                                                            Index key) {
    const Index strip = key / lanes * lanes, within = key % lanes;
    KeyBlock<T> queries;
    queries.keys = {rows.rows + row * rows.head_dim, rows.head_dim, 1};
    queries.count = rows.count - row;
    queries.score_mod = keys.score_mod;
    const T* bias = nullptr;
    if (keys.score_mod && keys.score_mod->bias) {
      bias = keys.score_mod->bias + row * keys.score_mod->bias_row + key;
    }
    return {.block = queries,
            .packed = rows.packed + strip * rows.head_dim + within,
            .scores = rows.scores + score_index(rows, row, key),
            .bias = bias,
            .head_dim = rows.head_dim};
  }

  /// The scores of the first `most` rows over `transposed_keys` keys, read in place.
  HEED_SIMD static void score_lying(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key,
                                    Index most) {
#if HEED_SIMD_BYTES == 32
    static_cast<void>(most);
    HalvesScores<T>::score_step(keys, rows, key);
#else
    for (const Index end = key + transposed_keys; key < end; key += S::width) {
      with_near(rows, [&](auto near) HEED_LAMBDA {
        if (most == 1) {
          score_transposed<single_row, near>(keys, rows, key);
        } else if (most == 3) {
          score_transposed<three_rows, near>(keys, rows, key);
        } else if (most <= decoded_at_once) {
          score_transposed<decoded_at_once, near>(keys, rows, key);
        } else {
          score_transposed<most_rows, near>(keys, rows, key);
        }
      });
    }
#endif
  }

  /// Packs the keys from `key` on.
  HEED_SIMD static void pack_rest(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index key) {
    const auto& lying = keys.keys;
    if constexpr (fewest_vectors == HEED_SIMD_VECTORS) {
      Table<T>::pack(lying.from(key, 0), keys.count - key, rows.head_dim, 1, packed_at(rows, key));
    } else {
      for (; key < keys.count; key += S::width) {
        pack_lanes<S>(lying.data + key * lying.row_stride, lying.row_stride, lying.column_stride,
                      keys.count - key, rows.head_dim, 1, packed_at(rows, key), lanes);
      }
    }
  }

  HEED_KERNEL static void scores(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    Index key = 0;
    if constexpr (transposes_one) {
      const Index most = rows_of_lying(rows.count);
      const bool lying = keys.keys.column_stride == 1 && (transposes_keys || rows.count == 1);
#if HEED_SIMD_BYTES == 32
      if (lying && !keys.score_mod) key = HalvesScores<T>::score_wide(keys, rows);
#endif
      for (; lying && key + transposed_keys <= keys.count; key += transposed_keys) {
        score_lying(keys, rows, key, most);
        if (keys.score_mod) modify_scores(packed_task(keys, rows, 0, key), 0, most);
        if (most == rows.count) continue;
        score_block<S, fewest_vectors>(packed_task(keys, rows, most, key), nullptr);
      }
    }
    if (key >= keys.count) return;
    pack_rest(keys, rows, key);
    for (; key < keys.count; key += transposed_keys) {
      score_block<S, fewest_vectors>(packed_task(keys, rows, 0, key), nullptr);
    }
  }
};

// Outputs of a few queries over a block of values, with columns of values in the lanes.

/// tail[row] = the columns of a row left over from whole groups of `Vectors`, then zeros.
template <class S, int Vectors = 1>
HEED_KERNEL void fill_tail(const MatrixRef<typename S::Scalar>& rows, Index count, Index columns,
                           typename S::Scalar* tail) {
  const Index left = columns % (Vectors * S::width);
  if (left == 0) return;
  const auto* from = rows.data + columns - left;
  for (Index row = 0; row < count; ++row, from += rows.row_stride, tail += Vectors * S::width) {
    HEED_UNROLL for (int lane = 0; lane < Vectors * S::width; lane += S::width) {
      S::store(tail + lane, load_upto<S>(from + lane, left < lane ? 0 : left - lane));
    }
  }
}

/// A `Number` is T or std::uint16_t, the bits of a bfloat16.
template <class T, class Number = T>
struct DecodeValues {
  using S = Lanes<T>;
  static constexpr Index lanes = strip_stride<S>;
  static constexpr Index fewest_lanes = fewest_vectors * S::width;
  // To save compile time, header-only programs have no kernel of one row.
  static constexpr bool one_alone = HEED_SIMD_ALL_KERNELS;
  /// Number of keys whose values are added to all rows before the next ones: they stay in the
  /// first-level cache.
  static constexpr Index value_step = 16;
  static constexpr Index line = numbers_in_line<Number>;

  /// output[row] += Σ_key p · value for some rows and columns and the keys [key, end).
  template <int Rows, int Vectors, class Ahead>
  HEED_KERNEL static void add_rows(const QueryRows<T>& rows, Index row, const Number* values,
                                   Index stride, Index key, Index end, Index d, Ahead& step_ahead) {
    auto ahead = step_ahead;
    const T* weights[Rows];
    T* out[Rows];
    typename S::V sums[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const Index at = row + r < rows.count ? row + r : rows.count - 1;
      weights[r] = rows.probabilities + at * row_keys;
      out[r] = rows.output + at * rows.output_stride + d;
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::load(out[r] + j * S::width);
    }
    constexpr int lines =
        Vectors * S::width < line ? 1 : Vectors * S::width / static_cast<int>(line);
    const bool fetches = row == 0 && d % line == 0;
    for (; key < end; ++key) {
      const Number* at = values + key * stride;
      typename S::V columns[Vectors];
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) columns[j] = load_wide<S>(at + j * S::width);
      if (fetches) ahead.template fetch<lines>(at);
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        const auto weight = S::broadcast(weights[r][key]);
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          sums[r][j] = S::fma(weight, columns[j], sums[r][j]);
        }
      }
    }
    step_ahead = ahead;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) S::store(out[r] + j * S::width, sums[r][j]);
    }
  }

  /// add_rows for all rows.
  template <int Vectors, class Ahead>
  HEED_SIMD static void add_columns(const QueryRows<T>& rows, const Number* values, Index stride,
                                    Index key, Index end, Index d, Ahead& ahead) {
    Index row = 0;
    for (; row + 1 < rows.count; row += decoded_at_once) {
      if (Vectors == HEED_SIMD_VECTORS && rows.count - row == 3) {
        add_rows<three_rows, Vectors>(rows, row, values, stride, key, end, d, ahead);
      } else {
        add_rows<decoded_at_once, Vectors>(rows, row, values, stride, key, end, d, ahead);
      }
    }
    if (row < rows.count) {
      add_rows<one_alone && Vectors == HEED_SIMD_VECTORS ? 1 : decoded_at_once, Vectors>(
          rows, row, values, stride, key, end, d, ahead);
    }
  }

  /// Like the other add_guarded: a masked pair is not touched at all.
  HEED_KERNEL static void add_guarded(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    for (Index row = 0; row < rows.count; ++row) {
      for (Index d = 0; d < rows.value_dim; ++d) {
        auto sum = S::broadcast(rows.output[row * rows.output_stride + d]);
        for (Index key = 0; key < keys.count; ++key) {
          if ((rows.bits(row, key) & 1) == 0) continue;
          sum = S::fma(S::broadcast(keys.values.data[key * keys.values.row_stride + d]),
                       S::broadcast(rows.probabilities[row * row_keys + key]), sum);
        }
        T spill[S::width];
        S::store(spill, sum);
        rows.output[row * rows.output_stride + d] = spill[0];
      }
    }
  }

  /// Whether a single row reads long rows of values in the order of memory. Processors that
  /// prefetch near foresee that, but for the first steps, and take longer with prefetches.
  HEED_SIMD static bool foreseen(const KeyBlock<Number>& keys, const QueryRows<T>& rows) {
    return one_alone && rows.near && rows.count == 1 && rows.value_dim == 2 * lanes &&
           keys.values.row_stride == rows.value_dim;
  }

  /// output += probabilities · values, in whole vectors of columns; returns how many.
  HEED_SIMD static Index add_whole(const KeyBlock<Number>& keys, const QueryRows<T>& rows) {
    const auto& values = keys.values;
    const Index whole = rows.value_dim / fewest_lanes * fewest_lanes;
    for (Index key = 0; key < keys.count; key += value_step) {
      const Index end = key + value_step < keys.count ? key + value_step : keys.count;
      if (one_alone && end < keys.count && foreseen(keys, rows)) {
        NothingAhead nothing;
        add_rows<1, 2 * HEED_SIMD_VECTORS>(rows, 0, values.data, values.row_stride, key, end, 0,
                                           nothing);
        continue;
      }
      const auto lines = lines_during_values(keys, rows, key, value_step);
      with_near(rows, [&](auto near) HEED_LAMBDA {
        auto ahead = StepAhead<near>::of(rows, lines, values, rows.value_dim, keys.count, key,
                                         value_step, next_of(keys, rows));
        Index d = 0;
        for (; one_alone && rows.count == 1 && d + 2 * lanes <= whole; d += 2 * lanes) {
          add_rows<1, (one_alone ? 2 : 1) * HEED_SIMD_VECTORS>(
              rows, 0, values.data + d, values.row_stride, key, end, d, ahead);
        }
        for (; d + lanes <= whole; d += lanes) {
          add_columns<HEED_SIMD_VECTORS>(rows, values.data + d, values.row_stride, key, end, d,
                                         ahead);
        }
        for (; d < whole; d += fewest_lanes) {
          add_columns<fewest_vectors>(rows, values.data + d, values.row_stride, key, end, d, ahead);
        }
      });
    }
    return whole;
  }

  HEED_KERNEL static void add(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    if (keys.guard_values) return add_guarded(keys, rows);
#if HEED_SIMD_BYTES == 32
    const Index whole = HalvesValues<T>::add_whole(keys, rows);
#else
    const Index whole = add_whole(keys, rows);
#endif
    if (whole == rows.value_dim) return;
    fill_tail<S, fewest_vectors>(keys.values, keys.count, rows.value_dim, rows.tail);
    StepAhead<false> nothing{};
    add_columns<fewest_vectors>(rows, rows.tail, fewest_lanes, 0, keys.count, whole, nothing);
  }
};

// A few queries over a block of keys, with keys in the lanes. The order of operations, which
// decides bits, is that of attend_queries.inl: a score is one chain of multiply-adds over head_dim,
// a sum one chain over the keys of a block, an output one chain over keys.

template <class T>
struct DecodeTable {
  using S = Lanes<T>;

  HEED_SIMD static typename S::V score_at(const QueryRows<T>& rows, Index row, Index key) {
    return S::load(rows.scores + score_index(rows, row, key));
  }

  /// The probabilities of a row relative to `maximum`.
  HEED_KERNEL static void exponentiate_row(const KeyBlock<T>& keys, const QueryRows<T>& rows,
                                           Index row, T maximum) {
    T* out = rows.probabilities + row * row_keys;
    for (Index key = 0; key < keys.count; key += S::width) {
      auto x = score_at(rows, row, key) - S::broadcast(maximum);
      if (rows.visible) {
        x = S::select(S::mask_of(rows.bits(row, key)), x, S::broadcast(masked_exponent<T>));
      }
      S::store(out + key, exp2<S>(x));
    }
  }

  HEED_KERNEL static T largest_of_row(const KeyBlock<T>& keys, const QueryRows<T>& rows,
                                      Index row) {
    const auto lowest = S::broadcast(LaneTypes<T>::lowest);
    auto largest = lowest;
    for (Index key = 0; key < keys.count; key += S::width) {
      std::uint64_t bits = rows.visible ? rows.bits(row, key) : ~std::uint64_t{0};
      if (keys.count - key < S::width) bits &= ~(~std::uint64_t{0} << (keys.count - key));
      largest = S::max(largest, S::select(S::mask_of(bits), score_at(rows, row, key), lowest));
    }
    T found[S::width];
    S::store(found, largest);
    for (const T x : found) {
      if (!(found[0] > x)) found[0] = x;  // like S::max: a NaN in the second operand stays
    }
    return found[0];
  }

  /// Moves the maximum of a row to that of this block.
  HEED_SIMD static void rescale_row(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                    T found) {
    const auto factor = move_maximum<S>(rows, row, found);
    T total[decoded_at_once];
    exponentiate_row(keys, rows, row, found);
    sum_rows(rows.probabilities + row * row_keys, 1, keys.count, total);
    rows.sum[row] = rescaled_sum<S>(rows.sum[row], factor, total[0]);
  }

  /// The softmax of some rows.
  HEED_KERNEL static void exponentiate(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row,
                                       Index count) {
    for (Index r = row; r < row + count; ++r) exponentiate_row(keys, rows, r, rows.maximum[r]);
    T totals[decoded_at_once];
    const T* weights = rows.probabilities + row * row_keys;
    if (DecodeValues<T>::foreseen(keys, rows)) {
      constexpr Index step = DecodeValues<T>::value_step;
      sum_rows(weights, count, keys.count, totals, lines_during_values(keys, rows, 0, step));
    } else {
      sum_rows(weights, count, keys.count, totals);
    }
    for (Index r = row; r < row + count; ++r) {
      if (totals[r - row] > lazy_limit<T>) {
        rescale_row(keys, rows, r, largest_of_row(keys, rows, r));
      } else {
        rows.sum[r] += totals[r - row];
      }
      if (keys.score_mod && keys.score_mod->keep) drop(keys, rows, r);
    }
  }

  /// Dropout, after the sums.
  HEED_SIMD static void drop(const KeyBlock<T>& keys, const QueryRows<T>& rows, Index row) {
    T* out = rows.probabilities + row * row_keys;
    const std::uint64_t* keep = keys.score_mod->keep + 2 * row;
    for (Index key = 0; key < keys.count; key += S::width) {
      const auto x = S::load(out + key) * S::broadcast(keys.score_mod->keep_factor);
      S::store(out + key, S::select(S::mask_of(keep[key >> 6] >> (key & 63)), x, S::broadcast(0)));
    }
  }

  HEED_SIMD static void softmax(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    constexpr Index step = decoded_at_once;
    for (Index row = 0; row < rows.count; row += step) {
      exponentiate(keys, rows, row, rows.count - row < step ? rows.count - row : step);
    }
  }
  HEED_KERNEL static void attend(const KeyBlock<T>& keys, const QueryRows<T>& rows) {
    softmax(keys, rows);
    DecodeValues<T>::add(keys, rows);
  }
};

template <class T>
const DecodeKernels<T>& decode_table() {
#if HEED_SIMD_BYTES == 16 && defined(__x86_64__) && !HEED_SIMD_ALL_KERNELS
  // To save compile time, header-only programs on machines without AVX2 decode as they prefill.
  static constexpr DecodeKernels<T> entries{nullptr, nullptr};
#else
  static constexpr DecodeKernels<T> entries{DecodeScores<T>::scores, DecodeTable<T>::attend};
#endif
  return entries;
}
