// SPDX-License-Identifier: MIT
// Softmax attention of a block of queries over a block of keys. Included by part.inl. Scores are
// transposed, Sᵀ = K·Qᵀ: a row per key, a lane per query, so that the maximum, the exponential and
// the sums need no operation across lanes. docs/03-attention.md derives it.

/// Log2 of the probability of a masked score: so small that 2^x is exactly 0.
template <class T>
inline constexpr T masked_exponent = static_cast<T>(-2 * LaneTypes<T>::bias);

/// Whether a micro tile prefetches a line in each step of its product. Many prefetches at once
/// would make it wait.
template <int Rows, int Vectors>
inline constexpr bool prefetches_between =
    HEED_SIMD_BYTES == 64 && (Vectors == HEED_SIMD_VECTORS) && Rows == rows_of<Vectors>;

/// One strip of queries and one block of keys. A row of its arrays has `Vectors` vectors in use and
/// is `stride` lanes long.
template <class LaneSet, int Vectors>
struct StripTask {
  using S = LaneSet;
  using T = typename S::Scalar;
  using V = typename S::V;
  static constexpr int lanes = Vectors * S::width;
  static constexpr int stride = strip_stride<S>;

  KeyBlock<T> block;
  const T* packed = nullptr;   // [head_dim][lane]
  T* scores = nullptr;         // [key][lane], before the softmax; may alias the probabilities
  T* probabilities = nullptr;  // [key][lane]
  T* output = nullptr;         // [value_dim][lane]
  T* maximum = nullptr;        // [lane]
  T* sum = nullptr;            // [lane]
  const T* bias = nullptr;     // (key, lane), of a ScoreModArrays
  Index head_dim = 0;
  Index value_dim = 0;
  int first_lane = 0;  // first lane of this strip in the lane words
  ComingRows* coming = nullptr;

  HEED_SIMD typename S::M lanes_of(std::uint64_t word, int vector) const {
    return S::mask_of(word >> (first_lane + vector * S::width));
  }
  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return lanes_of(block.words[key], vector);
  }
  /// Whether this strip prefetches keys and values; one of the strips that share them does.
  HEED_SIMD bool prefetches() const {
    return first_lane == 0 && block.values.data != nullptr && block.keys.column_stride == 1 &&
           block.values.column_stride == 1;
  }
  /// The lines of some keys or values, if it does.
  HEED_SIMD LinesAhead ahead(const MatrixRef<T>& rows, Index row, Index columns) const {
    if (!prefetches()) return LinesAhead::none(packed);
    return LinesAhead::of(rows.data + row * rows.row_stride, rows.row_stride, columns);
  }
};

// From the product to probabilities.

/// Applies the softcap and the bias of a ScoreModArrays to the scores of `rows` keys just stored. A
/// loop over memory, not registers: it is the same for all micro tiles, which saves compile time.
template <class S, int Vectors>
HEED_KERNEL void modify_scores(const StripTask<S, Vectors>& task, Index key, Index rows) {
  const auto& score_mod = *task.block.score_mod;
  for (Index row = key; row < key + rows; ++row) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      auto* at = task.scores + row * task.stride + j * S::width;
      auto score = S::load(at);
      if (score_mod.cap != 0) score = tanh_of_log2<S>(score) * S::broadcast(score_mod.cap);
      if (score_mod.bias)
        score = score + S::load(task.bias + row * score_mod.bias_row + j * S::width);
      S::store(at, score);
    }
  }
}

/// Stores the scores of `Rows` keys, modified.
template <class S, int Rows, int Vectors>
HEED_SIMD void store_scores(const StripTask<S, Vectors>& task, Index key,
                            const typename S::V (&scores)[Rows][Vectors]) {
  store_sums<S>(scores, task.scores + key * task.stride, task.stride);
  if (task.block.score_mod) modify_scores(task, key, Rows);
}

/// Turns the scores of `Rows` keys, still in registers, into probabilities 2^(s - m); stores them
/// and adds them to `totals` key by key.
template <class S, int Rows, int Vectors>
HEED_SIMD void store_probabilities(const StripTask<S, Vectors>& task, Index key,
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

/// Scores of the keys [key, key + Rows), a micro tile; with `totals`, their probabilities. Those of
/// prefetches_between prefetch lines of the values of these keys meanwhile, which are needed after
/// all scores of the block, then lines of the keys that come next.
template <class S, int Rows, int Vectors>
HEED_KERNEL void score_rows(const StripTask<S, Vectors>& task, Index key,
                            typename S::Scalar* totals) {
  typename S::V scores[Rows][Vectors] = {};
  const auto& keys = task.block.keys;
  const auto* first = keys.data + key * keys.row_stride;
  const auto multiply_columns = [&](Index d, Index end, auto ahead) HEED_LAMBDA {
    multiply<S, Rows, Vectors>(first + d * keys.column_stride, keys.row_stride, keys.column_stride,
                               task.packed + d * task.stride, task.stride, end - d, scores, ahead);
  };
  if constexpr (prefetches_between<Rows, Vectors>) {
    const Index half = task.head_dim / 2;
    multiply_columns(0, half, task.ahead(task.block.values, key, task.value_dim));
    multiply_columns(half, task.head_dim, task.ahead(keys, key + Rows, task.head_dim));
  } else {
    multiply_columns(0, task.head_dim, NothingAhead());
  }
  totals ? store_probabilities(task, key, scores, totals) : store_scores(task, key, scores);
}

// What decoding prefetches; for attend_keys.inl, decode_halves.inl and bfloat16.inl.

/// The rows read after those of the call: in T or, where bits are read in place, in bits.
template <class T>
HEED_SIMD const MatrixRef<T>& next_of(const KeyBlock<T>&, const QueryRows<T>& rows) {
  return rows.next;
}
template <class T>
HEED_SIMD const auto& next_of(const KeyBlock<std::uint16_t>&, const QueryRows<T>& rows) {
  return rows.next_bits[0];
}
/// What decoding prefetches while it takes the `step` keys at `key`: the rows that follow. Where
/// the next block is to be widened, its keys, then its values, twice as many rows at a time.
template <class T, class Number>
HEED_SIMD LinesAhead lines_after(const KeyBlock<Number>& keys, const QueryRows<T>& rows, Index key,
                                 Index step) {
  const bool late = 2 * key >= key_block;
  const auto& bits = rows.next_bits[late ? 1 : 0];
  if (std::is_same_v<Number, T> && bits.data) {
    const Index row = 2 * key - (late ? key_block : 0);
    return LinesAhead::of(bits.data + row * bits.row_stride, bits.row_stride,
                          late ? rows.value_dim : rows.head_dim);
  }
  return lines_beyond(keys.keys, rows.head_dim, keys.count, key, step, next_of(keys, rows),
                      rows.next_columns);
}
/// The same while the values of the `step` keys from `key` on are added.
template <class T, class Number>
HEED_SIMD LinesAhead lines_during_values(const KeyBlock<Number>& keys, const QueryRows<T>& rows,
                                         Index key, Index step) {
  return lines_beyond(keys.values, rows.value_dim, keys.count, key, step, next_of(keys, rows),
                      rows.next_columns);
}

// Blocks of keys.

/// score_rows for all keys of the block: probabilities and their `totals`, or, without `totals`,
/// scores. Micro tiles that do not prefetch between steps do so in front of them: a processor does
/// not foresee that rows are read six at a time. Values too large to fit a first-level cache beside
/// the rest would only push the rest out.
template <class S, int Vectors>
HEED_SHARED void score_block(const StripTask<S, Vectors>& task, typename S::Scalar* totals) {
  constexpr int most = rows_of<Vectors>;
  constexpr Index widest = 512 / static_cast<Index>(sizeof(typename S::Scalar));
  const bool prefetches = task.prefetches() && task.value_dim <= widest;
  for_each_micro_tile<most>(task.block.count, [&](auto rows, Index key) HEED_LAMBDA {
    if (!prefetches_between<most, Vectors>) {
      if (rows == most && prefetches) {
        prefetch_rows(task.block.keys, key + rows, rows, task.head_dim);
        prefetch_rows(task.block.values, key, rows, task.value_dim);
      }
      prefetch_coming(task.coming);
    }
    score_rows<S, rows, Vectors>(task, key, totals);
  });
}

/// Probabilities of the stored scores of one vector of lanes, and their sum key by key.
template <class S, int Vectors>
HEED_KERNEL typename S::V exponentiate(const StripTask<S, Vectors>& task, int vector,
                                       typename S::V maximum) {
  using T = typename S::Scalar;
  const auto* score_mod = task.block.score_mod;
  const std::uint64_t* keep =
      score_mod && score_mod->keep ? score_mod->keep + task.block.cut : nullptr;
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
      x = S::select(task.lanes_of(keep[key], vector), x * S::broadcast(score_mod->keep_factor),
                    S::broadcast(0));
    }
    S::store(task.probabilities + at, x);
  }
  return total;
}

/// The largest visible score of every lane of a vector, among the stored scores.
template <class S, int Vectors>
HEED_SIMD typename S::V largest_score(const StripTask<S, Vectors>& task, int vector) {
  const auto lowest = S::broadcast(LaneTypes<typename S::Scalar>::lowest);
  return largest_of<S>(task.block.count, [&](Index key) HEED_LAMBDA {
    const auto x = S::load(task.scores + key * task.stride + vector * S::width);
    return task.block.words ? S::select(task.visible(key, vector), x, lowest) : x;
  });
}

/// The maximum that a strip takes over: in the scalar type the one found, which pairs round
/// (pairs.inl).
template <class S, int Vectors>
HEED_SIMD typename S::V raised_maximum(const StripTask<S, Vectors>&, typename S::V,
                                       typename S::V found) {
  return found;
}

/// Probabilities of the block relative to the current maxima, and their sum in every lane.
template <class S, int Vectors>
HEED_SIMD void sum_block(const StripTask<S, Vectors>& task, typename S::Scalar* totals) {
  if (task.block.score_mod) {
    for (int j = 0; j < Vectors; ++j) {
      const auto maximum = S::load(task.maximum + j * S::width);
      S::store(totals + j * S::width, exponentiate(task, j, maximum));
    }
  } else {
    for (int lane = 0; lane < task.lanes; ++lane) totals[lane] = 0;
    score_block(task, totals);
  }
}

/// Takes as many of the coming rows as a line in each of `steps` steps prefetches, at least one,
/// and returns their lines; none if no row is left.
template <class T>
HEED_SIMD LinesAhead take_coming(ComingRows* coming, Index steps, const T* place) {
  auto lines = LinesAhead::none(place);
  for (int i = 0; coming != nullptr && i < coming->count; ++i) {
    auto& [data, stride, width, count] = coming->matrices[i];
    if (count <= 0 || width == 0) continue;
    lines = LinesAhead::of(data, stride, width);
    const Index row_lines = (width + 63) / 64;
    const Index taken = steps < row_lines ? 1 : steps / row_lines;
    data += taken * stride;
    count -= taken;
    break;
  }
  return lines;
}

/// output += Vᵀ·P over the block, by micro tiles. Meanwhile coming rows are prefetched.
template <class S, int Vectors>
HEED_SIMD void add_values(const StripTask<S, Vectors>& task, bool accumulate) {
  const auto& values = task.block.values;
  micro_tile_products<S, Vectors>(
      values.data, values.column_stride, values.row_stride, task.probabilities, task.stride,
      task.block.count, task.output, task.stride, task.value_dim, accumulate,
      [&](auto rows) HEED_LAMBDA {
        if constexpr (prefetches_between<rows, Vectors>) {
          return take_coming(task.coming, task.block.count, task.packed);
        } else {
          return NothingAhead();
        }
      });
}

/// out[d][lane] (+)= Σ_key rows(key, d) · weights[key][lane] for a vector of lanes, where a row
/// that is masked is NaN or Inf: a masked pair is not touched at all. Selected by mask and not by a
/// weight of 0, since an underflowed one times a visible Inf is still NaN.
template <class S, class T = typename S::Scalar>
HEED_KERNEL void add_guarded(const MatrixRef<T>& rows, Index columns, const std::uint64_t* words,
                             Index lane, Index keys, const T* weights, Index weights_row, T* out,
                             Index out_row, bool accumulate) {
  for (Index d = 0; d < columns; ++d, out += out_row) {
    auto sum = accumulate ? S::load(out) : S::broadcast(0);
    for (Index key = 0; key < keys; ++key) {
      const auto number = S::broadcast(rows.data[key * rows.row_stride + d * rows.column_stride]);
      const auto added = S::fma(number, S::load(weights + key * weights_row), sum);
      sum = S::select(S::mask_of(words[key] >> lane), added, sum);
    }
    S::store(out, sum);
  }
}

// What attend_strip asks of a task.

template <class S, int Vectors>
HEED_SIMD void add_block(const StripTask<S, Vectors>& task, bool accumulate) {
  const auto& block = task.block;
  if (!block.guard_values) return add_values(task, accumulate);
  for (int lane = 0; lane < task.lanes; lane += S::width) {
    add_guarded<S>(block.values, task.value_dim, block.words, task.first_lane + lane, block.count,
                   task.probabilities + lane, task.stride, task.output + lane, task.stride,
                   accumulate);
  }
}

template <class S, int Vectors>
HEED_SIMD void score_modified(const StripTask<S, Vectors>& task) {
  const auto* score_mod = task.block.score_mod;
  if (score_mod && !score_mod->given) score_block<S, Vectors>(task, nullptr);
}
template <class S, int Vectors>
HEED_SIMD void score_again(const StripTask<S, Vectors>& task) {
  if (!task.block.score_mod) score_block<S, Vectors>(task, nullptr);
}

/// Whether a strip is faster vector by vector: it has few queries, or a mask such as the causal
/// diagonal gives its vectors unequal work. The width of a strip decides no bit.
template <class AnyTable, class Keys>
HEED_SIMD bool single_vector_pays(const Keys& keys, Index lane, Index left) {
  constexpr int width = AnyTable::S::width;
  if (left <= AnyTable::few_queries) return true;
  if (keys.words == nullptr) return false;
  Index narrow = 0;
  for (int j = 0; j < HEED_SIMD_VECTORS; ++j) {
    narrow += AnyTable::seen_keys(keys, lane + j * width, width).count;
  }
  return 5 * narrow <
         4 * HEED_SIMD_VECTORS * AnyTable::seen_keys(keys, lane, AnyTable::lanes).count;
}

/// Calls run(vectors, lane) for `count` queries from the first one on, with as many vectors at a
/// time as lie side by side or, where that pays, with one.
template <class AnyTable, class Keys, class Run>
HEED_SIMD void for_each_width(const Keys& keys, Index count, const Run& run) {
  constexpr Index most = AnyTable::lanes;
  for (Index first = 0; first < count; first += most) {
    if constexpr (HEED_SIMD_VECTORS == 4) {
      const Index left = count - first < most ? count - first : most;
      if (single_vector_pays<AnyTable>(keys, first, left)) {
        for (Index lane = first; lane < first + left; lane += AnyTable::S::width) {
          run(Known<1>(), lane);
        }
        continue;
      }
    }
    run(Known<HEED_SIMD_VECTORS>(), first);
  }
}

// The entries of Kernels.

template <class T>
struct Table {
  using S = Lanes<T>;
  using V = typename S::V;
  static constexpr int lanes = strip_stride<S>;
  static constexpr Index few_queries = 3 * S::width;  // for which single vectors are faster

  HEED_KERNEL static void pack(MatrixRef<T> rows, Index count, Index columns, T factor, T* packed) {
    for (Index lane = 0; lane < count; lane += S::width) {
      T* strip = packed + lane / lanes * lanes * columns + lane % lanes;
      pack_lanes<S>(rows.data + lane * rows.row_stride, rows.row_stride, rows.column_stride,
                    count - lane, columns, factor, strip, lanes);
    }
    // Strips of two vectors are computed whole: their unused lanes must hold numbers.
    const Index end = (count + S::width - 1) / S::width * S::width;
    if (end % lanes == 0 || HEED_SIMD_VECTORS == 4) return;
    T* strip = packed + end / lanes * lanes * columns;
    for (Index column = 0; column < columns; ++column) {
      S::store(strip + column * lanes + S::width, S::broadcast(0));
    }
  }

  HEED_KERNEL static void unpack(const T* transposed, Index count, Index columns, const T* factors,
                                 T* out, Index row_stride, Index column_stride) {
    for (Index lane = 0; lane < count; lane += S::width) {
      const T* strip = transposed + lane / lanes * lanes * columns + lane % lanes;
      unpack_lanes<S>(strip, lanes, count - lane, columns, factors + lane, out + lane * row_stride,
                      row_stride, column_stride);
    }
  }

  template <int Vectors>
  HEED_SIMD static StripTask<S, Vectors> task_of(const KeyBlock<T>& keys,
                                                 const QueryBlock<T>& queries,
                                                 const SoftmaxState<T>& state, Index lane) {
    const Index strip = lane / lanes * lanes, within = lane % lanes;
    T* scores = queries.probabilities;
    const T* bias = nullptr;
    if (keys.score_mod) {
      scores = queries.scores + strip * key_block + keys.cut * lanes + within;
      if (keys.score_mod->bias) {
        bias = keys.score_mod->bias + strip / lanes * keys.score_mod->bias_strip +
               keys.cut * keys.score_mod->bias_row + within;
      }
    }
    return {keys,
            queries.packed + strip * queries.head_dim + within,
            scores,
            queries.probabilities,
            state.output + strip * queries.value_dim + within,
            state.maximum + lane,
            state.sum + lane,
            bias,
            queries.head_dim,
            queries.value_dim,
            static_cast<int>(lane),
            queries.coming};
  }

  /// The block without the keys at its ends that none of the lanes [lane, lane + width) sees.
  HEED_SIMD static KeyBlock<T> seen_keys(KeyBlock<T> block, Index lane, int width) {
    if (block.words == nullptr) return block;
    const Range seen = seen_by(block.words, block.count, word_of_lanes(lane, width));
    block.keys = block.keys.from(seen.first, 0);
    block.values = block.values.from(seen.first, 0);
    block.words += seen.first;
    block.count = seen.end - seen.first;
    block.cut += seen.first;
    return block;
  }

  template <int Vectors>
  HEED_SIMD static void attend_lanes(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                                     const SoftmaxState<T>& state, Index lane, bool first) {
    const auto seen = seen_keys(keys, lane, Vectors * S::width);
    const auto task = task_of<Vectors>(seen, queries, state, lane);
    if (seen.count > 0) {
      attend_strip(task, first);
    } else if (first) {
      for (Index d = 0; d < queries.value_dim; ++d) {
        for (int j = 0; j < Vectors; ++j) {
          S::store(task.output + d * task.stride + j * S::width, S::broadcast(0));
        }
      }
    }
  }

  HEED_KERNEL static void attend(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                                 const SoftmaxState<T>& state, bool first) {
    for_each_width<Table>(keys, queries.count, [&](auto vectors, Index lane) HEED_LAMBDA {
      attend_lanes<vectors>(keys, queries, state, lane, first);
    });
  }

  HEED_KERNEL static void scores(const KeyBlock<T>& keys, const QueryBlock<T>& queries) {
    for (Index lane = 0; lane < queries.count; lane += lanes) {
      score_block<S, HEED_SIMD_VECTORS>(task_of<HEED_SIMD_VECTORS>(keys, queries, {}, lane),
                                        nullptr);
    }
  }

  HEED_KERNEL static void probabilities(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                                        T* maximum) {
    constexpr int step = fewest_vectors * S::width;
    T totals[step] = {};
    for (Index lane = 0; lane < queries.count; lane += step) {
      // Of the state, the maximum alone is used; every strip has probabilities of its own.
      auto task =
          task_of<fewest_vectors>(keys, queries, {maximum, maximum, queries.probabilities}, lane);
      task.probabilities += lane / lanes * lanes * key_block + lane % lanes;
      score_modified(task);
      sum_block(task, totals);
    }
  }

  HEED_KERNEL static void merge(const SoftmaxState<T>& total, const SoftmaxState<T>& part,
                                Index count, Index value_dim) {
    for (Index lane = 0; lane < count; lane += S::width) {
      const auto old = S::load(total.maximum + lane);
      const auto other = S::load(part.maximum + lane);
      const auto maximum = S::max(old, other);
      const auto keep = exp2<S>(old - maximum);
      const auto add = exp2<S>(other - maximum);
      S::store(total.maximum + lane, maximum);
      S::store(total.sum + lane,
               S::fma(S::load(part.sum + lane), add, S::load(total.sum + lane) * keep));
      const Index offset = lane / lanes * lanes * value_dim + lane % lanes;
      for (Index d = 0; d < value_dim; ++d) {
        T* at = total.output + offset + d * lanes;
        const T* from = part.output + offset + d * lanes;
        S::store(at, S::fma(S::load(from), add, S::load(at) * keep));
      }
    }
  }

  /// sums[r] += 0 · row r: NaN if a row holds a number that is not finite.
  template <int Rows>
  HEED_SIMD static void add_zero_times(const T* at, Index row_stride, Index columns, V* sums) {
    const V zero = S::broadcast(0);
    Index column = 0;
    for (; column + S::width <= columns; column += S::width) {
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        sums[r] = S::fma(S::load(at + r * row_stride + column), zero, sums[r]);
      }
    }
    const Index left = columns - column;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      if (left > 0) {
        sums[r] = S::fma(load_first<S>(at + r * row_stride + column, left), zero, sums[r]);
      }
    }
  }

  HEED_KERNEL static bool all_finite(const MatrixRef<T>& matrix, Index rows, Index columns) {
    constexpr int together = 4;  // rows with separate sums, so that additions overlap
    V sums[together];
    HEED_UNROLL for (int r = 0; r < together; ++r) sums[r] = S::broadcast(0);
    const bool contiguous = matrix.column_stride == 1;
    Index row = 0;
    for (; contiguous && row + together <= rows; row += together) {
      add_zero_times<together>(matrix.data + row * matrix.row_stride, matrix.row_stride, columns,
                               sums);
    }
    for (; contiguous && row < rows; ++row) {
      add_zero_times<1>(matrix.data + row * matrix.row_stride, 0, columns, sums);
    }
    T sum = 0;
    for (; row < rows; ++row) {
      const T* at = matrix.data + row * matrix.row_stride;
      for (Index column = 0; column < columns; ++column) {
        sum += at[column * matrix.column_stride] * T{0};
      }
    }
    T spill[S::width];
    S::store(spill, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (const T lane : spill) sum += lane;
    return sum == 0;
  }

  HEED_KERNEL static void exp2_of(const T* in, T* out, Index count) {
    Index i = 0;
    for (; i + S::width <= count; i += S::width) S::store(out + i, exp2<S>(S::load(in + i)));
    if (i == count) return;
    T spill[S::width] = {};
    for (Index j = i; j < count; ++j) spill[j - i] = in[j];
    S::store(spill, exp2<S>(S::load(spill)));
    for (Index j = i; j < count; ++j) out[j] = spill[j - i];
  }
};

template <class T>
const Kernels<T>& table() {
  using K = Table<T>;
  static constexpr Kernels<T> entries{K::lanes,  K::pack,       K::unpack,
                                      K::scores, K::attend,     K::probabilities,
                                      K::merge,  K::all_finite, K::exp2_of};
  return entries;
}
