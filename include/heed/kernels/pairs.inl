// SPDX-License-Identifier: MIT
// Vectors of bfloat16 pairs and the product of micro tiles on them, a·b + a'·b' + c in one
// instruction. Included by part.inl.

/// Two bfloat16 per lane of T = float.
template <class T>
struct Pairs {
  using S = Lanes<T>;
  typedef std::int32_t V __attribute__((vector_size(HEED_SIMD_BYTES)));
  typedef std::int32_t Unaligned
      __attribute__((vector_size(HEED_SIMD_BYTES), aligned(2), may_alias));
  typedef std::uint16_t Halves __attribute__((vector_size(HEED_SIMD_BYTES)));
  typedef std::int32_t Word __attribute__((aligned(2), may_alias));
  static constexpr Index width = S::width;
  static constexpr Index step = 2 * width;  // bfloat16 in a vector

  HEED_SIMD static V load(const std::uint16_t* at) {
    return *reinterpret_cast<const Unaligned*>(at);
  }
  /// A vector, or the first `left` numbers and zeros: assembler, as for add_products.
  HEED_SIMD static V load_upto(const std::uint16_t* at, Index left) {
    const std::uint32_t mask = left < step ? (std::uint32_t{1} << left) - 1 : ~std::uint32_t{0};
    V numbers;
    asm("vmovdqu16 %1, %0 %{%2%}%{z%}"
        : "=v"(numbers)
        : "m"(*reinterpret_cast<const Unaligned*>(at)), "Yk"(mask));
    return numbers;
  }
  HEED_SIMD static void store(std::uint16_t* at, V pairs) {
    *reinterpret_cast<Unaligned*>(at) = pairs;
  }
  HEED_SIMD static V spread(const std::uint16_t* at) {
    return *reinterpret_cast<const Word*>(at) - V{};
  }
  /// `bits` in the lanes of `mask`, 0 in the others.
  HEED_SIMD static V where(typename S::M mask, std::int32_t bits) {
    return (V)S::select(mask, (typename S::V)(bits - V{}), typename S::V{});
  }
  /// The elements of two rows alternately: those of the first half, or of the second.
  HEED_SIMD static V first_zipped(V low, V high) {
    return zip<0>(low, high, std::make_integer_sequence<int, step>());
  }
  HEED_SIMD static V second_zipped(V low, V high) {
    return zip<width>(low, high, std::make_integer_sequence<int, step>());
  }
  HEED_SIMD static void store_zipped(V low, V high, std::uint16_t* to) {
    store(to, first_zipped(low, high));
    store(to + step, second_zipped(low, high));
  }
  /// sums + a·b: assembler, since compilers disagree on the types of the builtin.
  HEED_SIMD static typename S::V add_products(V a, V b, typename S::V sums) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
    return sums;
  }
  /// The vectors rounded to bfloat16, one behind the other; denormal numbers become 0.
  HEED_SIMD static V narrowed(typename S::V low, typename S::V high) {
    V result;
    asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(result) : "v"(high), "v"(low));
    return result;
  }

 private:
  template <int First, int... I>
  HEED_SIMD static V zip(V low, V high, std::integer_sequence<int, I...>) {
    return (V)__builtin_shufflevector((Halves)low, (Halves)high, (First + I / 2 + I % 2 * step)...);
  }
};

/// `multiply` of micro_tile.inl in pairs: sums[r][lane] += Σ_k a(r, k) · b[k][lane] with k over
/// pairs; strides count bfloat16.
template <class P, int Rows, int Vectors, class Ahead = NothingAhead>
HEED_SIMD void multiply_pairs(const std::uint16_t* a, Index a_row, Index a_step,
                              const std::uint16_t* b, Index b_stride, Index depth,
                              typename P::S::V (&sums)[Rows][Vectors], Ahead ahead = {}) {
  for (Index k = 0; k < depth; ++k) {
    ahead.fetch_line();
    typename P::V lanes[Vectors];
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) lanes[j] = P::load(b + j * P::step);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const auto value = P::spread(a + r * a_row);
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        sums[r][j] = P::add_products(value, lanes[j], sums[r][j]);
      }
    }
    a += a_step;
    b += b_stride;
  }
}

/// The numbers that bfloat16_weight computes with.
template <class S>
struct WeightTerms {
  typename S::V cubic, quadratic, linear, constant, unit;

  HEED_SIMD static WeightTerms all() {
    constexpr float unit = 0x1.8p16f;
    return {S::broadcast(0x1.3baaa6p-4f), S::broadcast(0x1.d2378ap-3f),
            S::broadcast(0x1.63e658p-1f), S::broadcast(unit + 1), S::broadcast(unit)};
  }
  /// The same, which a compiler keeps in registers: it would load them anew for each product of
  /// tiles, from places for loads that tiles wait for.
  HEED_SIMD static WeightTerms held() {
    auto terms = all();
    asm("" : "+v"(terms.cubic), "+v"(terms.quadratic), "+v"(terms.linear));
    asm("" : "+v"(terms.constant), "+v"(terms.unit));
    return terms;
  }
};

/// A probability as bfloat16, in a float: 2^x rounded to 8 bits. 1 for the maximum, 0 below 2^-150,
/// NaN for NaN. 2^x is a polynomial of the part of x above the next lower integer, in [1, 2], so
/// that a sum can round it to a multiple of 1/128, times 2 to that integer. The polynomial's
/// relative error is 8.6e-5, a twentieth of the largest error of rounding. `Limited` weights are at
/// most 2^48; others overflow, which a sum may that is only compared with the lazy limit.
template <bool Limited, class S>
HEED_SIMD typename S::V bfloat16_weight(typename S::V x,
                                        const WeightTerms<S>& terms = WeightTerms<S>::all()) {
  // 48 exceeds the lazy limit, past which the maximum moves, and keeps a block's sum far from
  // overflow.
  const auto limited = Limited ? S::min(S::broadcast(48), x) : x;
  typename S::V f, weight;  // of instructions that are the same in any lane
  asm("vreduceps $1, %1, %0" : "=v"(f) : "v"(x));
  auto p = S::fma(terms.cubic, f, terms.quadratic);
  p = S::fma(p, f, terms.linear);
  p = S::fma(p, f, terms.constant) - terms.unit;
  asm("vscalefps %2, %1, %0" : "=v"(weight) : "v"(p), "v"(limited));
  return weight;
}

/// The bits of two probabilities as a pair; those below 2^-126 lose some. `low >> 16 | (high &
/// upper halves)` is one instruction behind the shift, which g++ 12 writes as two.
template <class P>
HEED_SIMD typename P::V pair_of(typename P::S::V low, typename P::S::V high) {
  auto pair = (typename P::V)((WholeWords)low >> 16);
  asm("vpternlogd $0xf8, %2, %1, %0" : "+v"(pair) : "v"(high), "v"((WholeWords{} + 0xffff0000)));
  return pair;
}

// The counterpart of attend_queries.inl for bfloat16 pairs. Pairs run along head_dim for scores and
// along keys for values. Which two keys form a pair decides bits: it is always an even position and
// the next one.

/// One strip of queries and one block of keys.
template <class Scalar, int Vectors>
struct PairTask {
  using T = Scalar;
  using S = Lanes<T>;
  static constexpr int lanes = Vectors * S::width;
  static constexpr Index stride = strip_stride<S>;
  static constexpr Index score_row = stride;  // from the scores of a key to the next

  const PairKeys* keys;
  Index first;                   // the first key that a lane of the strip sees, made even
  Index count;                   // keys from there on
  const std::uint16_t* packed;   // [head_dim / 2][lane][2]
  T* scores;                     // [key][lane], scratch
  std::uint16_t* probabilities;  // [key / 2][lane][2], in the memory of the scores
  T* output;                     // [value_dim][lane]
  T* maximum;                    // [lane]
  T* sum;                        // [lane]
  T factor;
  Index depth;  // pairs in head_dim
  Index value_dim;
  int first_lane;
  ComingRows* coming = nullptr;  // null, or what to prefetch

  /// The values of an even key and the next one, in pairs.
  HEED_SIMD const std::uint16_t* values(Index key) const {
    return keys->values + (keys->before + first + key) * value_dim;
  }
  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return S::mask_of(keys->words[first + key] >> (first_lane + vector * S::width));
  }
  template <bool Masked, bool Limited>
  HEED_SIMD typename S::V weight(typename S::V score, typename S::V base, Index key, int vector,
                                 const WeightTerms<S>& terms = WeightTerms<S>::all()) const {
    const auto x = S::fma(score, S::broadcast(factor), base);
    const auto weight = bfloat16_weight<Limited, S>(x, terms);
    if constexpr (!Masked) return weight;
    return S::select(visible(key, vector), weight, S::broadcast(0));
  }
  /// The term that `weight` adds to scores.
  HEED_SIMD static typename S::V base_of(typename S::V maximum) {
    return S::broadcast(0) - maximum;
  }
};

/// Probabilities of the keys [key, key + Rows) of scores in registers, and their sums key by key.
template <bool Masked, class T, int Rows, int Vectors>
HEED_SIMD void weigh_pair_rows(const PairTask<T, Vectors>& task, Index key,
                               typename Lanes<T>::V (&scores)[Rows][Vectors], T* totals) {
  using S = Lanes<T>;
  using P = Pairs<T>;
  HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
    auto total = S::load(totals + j * S::width);
    const auto base = task.base_of(S::load(task.maximum + j * S::width));
    HEED_UNROLL for (int r = 0; r < Rows; r += 2) {
      const auto low = task.template weight<Masked, false>(scores[r][j], base, key + r, j);
      total = total + low;
      auto high = S::broadcast(0);
      if constexpr (Rows > 1) {
        high = task.template weight<Masked, false>(scores[r + 1][j], base, key + r + 1, j);
        total = total + high;
      }
      P::store(task.probabilities + (key + r) * task.stride + j * P::step, pair_of<P>(low, high));
    }
    S::store(totals + j * S::width, total);
  }
}

/// Scores of the keys [key, key + Rows); with `totals`, their probabilities and sums key by key;
/// without, the scores.
template <int Rows, class T, int Vectors>
HEED_KERNEL void score_pair_rows(const PairTask<T, Vectors>& task, Index key, T* totals) {
  using S = Lanes<T>;
  using P = Pairs<T>;
  typename S::V scores[Rows][Vectors] = {};
  const auto& keys = task.keys->keys;
  const auto* first = keys.data + (task.first + key) * keys.row_stride;
  const auto multiply_some = [&](Index d, Index end, auto ahead) HEED_LAMBDA {
    multiply_pairs<P, Rows, Vectors>(first + 2 * d, keys.row_stride, 2,
                                     task.packed + 2 * d * task.stride, 2 * task.stride, end - d,
                                     scores, ahead);
  };
  if constexpr (prefetches_between<Rows, Vectors>) {
    const Index half = task.depth / 2, columns = 2 * task.value_dim;
    multiply_some(0, half, LinesAhead::of(task.values(key), columns, columns));
    multiply_some(half, task.depth,
                  LinesAhead::of(first + Rows * keys.row_stride, keys.row_stride, 2 * task.depth));
  } else {
    multiply_some(0, task.depth, NothingAhead());
  }
  if (totals == nullptr) {
    store_sums<S>(scores, task.scores + key * task.stride, task.stride);
    return;
  }
  task.keys->words ? weigh_pair_rows<true>(task, key, scores, totals)
                   : weigh_pair_rows<false>(task, key, scores, totals);
}

template <class T, int Vectors>
HEED_SIMD void score_pair_block(const PairTask<T, Vectors>& task, T* totals) {
  Index key = 0;
  for (; key + 6 <= task.count; key += 6) {
    prefetch_coming(task.coming);
    score_pair_rows<6>(task, key, totals);
  }
  for (; key + 2 <= task.count; key += 2) score_pair_rows<2>(task, key, totals);
  if (key < task.count) score_pair_rows<1>(task, key, totals);
}

/// Probabilities of two keys, or of a last one Alone, from one vector's stored scores, which they
/// overwrite; returns `total` plus their sum.
template <bool Masked, bool Limited, bool Alone = false, class Task>
HEED_SIMD typename Task::S::V exponentiate_pair(const Task& task, int vector,
                                                typename Task::S::V base, Index key,
                                                typename Task::S::V total,
                                                const WeightTerms<typename Task::S>& terms) {
  using S = typename Task::S;
  using P = Pairs<typename Task::T>;
  const auto* at = task.scores + key * task.score_row + vector * S::width;
  const auto low = task.template weight<Masked, Limited>(S::load(at), base, key, vector, terms);
  auto high = S::broadcast(0);
  total = total + low;
  if constexpr (!Alone) {
    high = task.template weight<Masked, Limited>(S::load(at + task.score_row), base, key + 1,
                                                 vector, terms);
    total = total + high;
  }
  P::store(task.probabilities + key * task.score_row + vector * P::step, pair_of<P>(low, high));
  return total;
}

/// Probabilities of one vector's stored scores, which they overwrite; and their sum.
template <bool Masked, class T, int Vectors>
HEED_SIMD typename Lanes<T>::V exponentiate_pairs(const PairTask<T, Vectors>& task, int vector,
                                                  typename Lanes<T>::V maximum) {
  const auto base = task.base_of(maximum);
  const auto terms = WeightTerms<Lanes<T>>::all();
  auto total = Lanes<T>::broadcast(0);
  Index key = 0;
  for (; key + 2 <= task.count; key += 2) {
    total = exponentiate_pair<Masked, true>(task, vector, base, key, total, terms);
  }
  if (key == task.count) return total;
  return exponentiate_pair<Masked, true, true>(task, vector, base, key, total, terms);
}

/// The larger of the maximum so far and the one found. The maximum is a rounded product, but the
/// products that `weight` subtracts it from are not rounded. Where that rounding could exceed the
/// range of weights, the maximum is lowered so that the largest score still has a weight.
template <class S>
HEED_SIMD typename S::V pair_maximum(typename S::V old, typename S::V found) {
  const auto size = S::max(found, S::broadcast(0) - found);
  const auto low = S::fma(size, S::broadcast(-0x1p-22f), found);
  return S::max(old, S::select(S::greater(size, S::broadcast(0x1p24f)), low, found));
}

// What the online softmax does with a strip, as for StripTask.

template <class Task>
HEED_SIMD typename Task::S::V largest_score(const Task& task, int vector) {
  using S = typename Task::S;
  const auto lowest = S::broadcast(LaneTypes<typename Task::T>::lowest);
  return largest_of<S>(task.count, [&](Index key) HEED_LAMBDA {
    const auto* at = task.scores + key * task.score_row + vector * S::width;
    const auto x = S::load(at) * S::broadcast(task.factor);
    return task.keys->words ? S::select(task.visible(key, vector), x, lowest) : x;
  });
}
template <class T, int Vectors>
HEED_SIMD typename Lanes<T>::V raised_maximum(const PairTask<T, Vectors>&, typename Lanes<T>::V old,
                                              typename Lanes<T>::V found) {
  return pair_maximum<Lanes<T>>(old, found);
}
template <class T, int Vectors>
HEED_SIMD typename Lanes<T>::V exponentiate(const PairTask<T, Vectors>& task, int vector,
                                            typename Lanes<T>::V maximum) {
  return task.keys->words ? exponentiate_pairs<true>(task, vector, maximum)
                          : exponentiate_pairs<false>(task, vector, maximum);
}
template <class T, int Vectors>
HEED_SIMD void score_modified(const PairTask<T, Vectors>&) {}
template <class T, int Vectors>
HEED_SIMD void sum_block(const PairTask<T, Vectors>& task, T* totals) {
  for (int lane = 0; lane < task.lanes; ++lane) totals[lane] = 0;
  score_pair_block(task, totals);
}
template <class T, int Vectors>
HEED_SIMD void score_again(const PairTask<T, Vectors>& task) {
  score_pair_block<T, Vectors>(task, nullptr);
}

/// output rows [d, d + Rows) (+)= values · probabilities.
template <int Rows, class T, int Vectors>
HEED_KERNEL void add_pair_rows(const PairTask<T, Vectors>& task, Index d, bool accumulate) {
  using S = Lanes<T>;
  T* out = task.output + d * task.stride;
  typename S::V sums[Rows][Vectors] = {};
  if (accumulate) load_sums<S>(sums, out, task.stride);
  const Index row = 2 * task.value_dim;
  multiply_pairs<Pairs<T>, Rows, Vectors>(task.values(0) + 2 * d, 2, row, task.probabilities,
                                          2 * task.stride, (task.count + 1) / 2, sums);
  store_sums<S>(sums, out, task.stride);
}

/// Like add_guarded of attend_queries.inl: masked halves of pairs count as 0.
template <class T, int Vectors>
HEED_KERNEL void add_pairs_guarded(const PairTask<T, Vectors>& task, bool accumulate) {
  using S = Lanes<T>;
  using P = Pairs<T>;
  for (Index d = 0; d < task.value_dim; ++d) {
    for (int j = 0; j < Vectors; ++j) {
      T* at = task.output + d * task.stride + j * S::width;
      auto sum = accumulate ? S::load(at) : S::broadcast(0);
      for (Index key = 0; key < task.count; key += 2) {
        const auto* pair = task.values(key) + 2 * d;
        auto seen = P::where(task.visible(key, j), 0xffff);
        if (key + 1 < task.count) seen |= P::where(task.visible(key + 1, j), ~0xffff);
        sum = P::add_products(P::spread(pair) & seen,
                              P::load(task.probabilities + key * task.stride + j * P::step), sum);
      }
      S::store(at, sum);
    }
  }
}

template <class T, int Vectors>
HEED_SIMD void add_block(const PairTask<T, Vectors>& task, bool accumulate) {
  if (task.keys->guard_values) return add_pairs_guarded(task, accumulate);
  Index d = 0;
  for (; d + 6 <= task.value_dim; d += 6) add_pair_rows<6>(task, d, accumulate);
  for (; d + 2 <= task.value_dim; d += 2) add_pair_rows<2>(task, d, accumulate);
  if (d < task.value_dim) add_pair_rows<1>(task, d, accumulate);
}

// The entries of PairKernels.

template <class T>
struct PairTable {
  using S = Lanes<T>;
  using P = Pairs<T>;
  static constexpr Index lanes = strip_stride<S>;
  static constexpr Index few_queries = 2 * S::width;  // see Table

  HEED_SIMD static std::uint16_t element(const MatrixRef<std::uint16_t>& rows, Index row,
                                         Index column) {
    return rows.data[row * rows.row_stride + column * rows.column_stride];
  }

  /// Packs 16 rows by 32 columns, as pairs, by a transpose; `stride` is the distance of pairs.
  HEED_KERNEL static void pack_square(const std::uint16_t* rows, Index row_stride, Index count,
                                      std::uint16_t* packed, Index stride) {
    typename S::V pairs[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      pairs[i] = (typename S::V)P::load(row_or_last(rows, row_stride, count, i));
    }
    transpose<S>(pairs);
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      P::store(packed + i * stride, (typename P::V)pairs[i]);
    }
  }

  HEED_KERNEL static void pack(MatrixRef<std::uint16_t> rows, Index count, Index columns,
                               std::uint16_t* packed) {
    const Index depth = (columns + 1) / 2;
    for (Index lane = 0; lane < count; lane += S::width) {
      std::uint16_t* strip = packed + lane / lanes * lanes * 2 * depth + lane % lanes * 2;
      Index column = 0;
      for (; rows.column_stride == 1 && column + P::step <= columns; column += P::step) {
        pack_square(rows.data + lane * rows.row_stride + column, rows.row_stride, count - lane,
                    strip + column * lanes, 2 * lanes);
      }
      for (; column < columns; ++column) {
        for (Index i = 0; i < S::width; ++i) {
          const Index row = lane + i < count ? lane + i : count - 1;
          std::uint16_t* to = strip + column / 2 * 2 * lanes + 2 * i;
          to[column % 2] = element(rows, row, column);
          if (column + 1 == columns && column % 2 == 0) to[1] = 0;
        }
      }
    }
  }

  HEED_KERNEL static void zip(MatrixRef<std::uint16_t> rows, Index count, Index columns,
                              std::uint16_t* pairs) {
    for (Index row = 0; row < count; row += 2, pairs += 2 * columns) {
      const bool alone = row + 1 == count;
      Index column = 0;
      for (; !alone && rows.column_stride == 1 && column + P::step <= columns; column += P::step) {
        const std::uint16_t* at = rows.data + row * rows.row_stride + column;
        P::store_zipped(P::load(at), P::load(at + rows.row_stride), pairs + 2 * column);
      }
      for (; column < columns; ++column) {
        pairs[2 * column] = element(rows, row, column);
        pairs[2 * column + 1] = alone ? std::uint16_t{0} : element(rows, row + 1, column);
      }
    }
  }

  HEED_KERNEL static void narrow(MatrixRef<T> from, Index rows, Index columns, std::uint16_t* to,
                                 Index to_row) {
    if (from.column_stride == 1 && from.row_stride == columns && to_row == columns) {  // as one row
      columns *= rows;
      rows = rows > 0;
    }
    for (Index row = 0; row < rows; ++row, to += to_row) {
      const T* at = from.data + row * from.row_stride;
      Index column = 0;
      for (; from.column_stride == 1 && column + P::step <= columns; column += P::step) {
        P::store(to + column, P::narrowed(S::load(at + column), S::load(at + column + S::width)));
      }
      Bfloat16Table<T>::round_row(at + column * from.column_stride, from.column_stride,
                                  columns - column, to + column);
    }
  }

  HEED_KERNEL static bool all_finite(const std::uint16_t* values, Index count) {
    typename P::Halves carries{};  // an exponent of all ones, plus one, carries into the sign bit
    std::uint32_t carry = 0;
    Index i = 0;
    for (; i + P::step <= count; i += P::step) {
      carries |= ((typename P::Halves)P::load(values + i) & 0x7f80) + 0x80;
    }
    for (; i < count; ++i) carry |= (values[i] & 0x7f80u) + 0x80;
    for (int j = 0; j < P::step; ++j) carry |= carries[j];
    return (carry & 0x8000) == 0;
  }

  /// The keys that some of the lanes [lane, lane + width) see: `count` keys from `first` on, after
  /// cutting off whole pairs in front.
  struct Seen {
    Index first;
    Index count;
  };
  HEED_SIMD static Seen seen_keys(const PairKeys& keys, Index lane, Index width) {
    const Range seen = seen_by(keys.words, keys.count, word_of_lanes(lane, width));
    const Index first = seen.first - seen.first % 2;
    return {first, seen.end - first};
  }

  template <int Vectors>
  HEED_SIMD static void attend_lanes(const PairKeys& keys, const PairQueries<T>& queries,
                                     const SoftmaxState<T>& state, Index lane, bool first) {
    const auto seen = seen_keys(keys, lane, Vectors * S::width);
    const Index strip = lane / lanes * lanes, within = lane % lanes;
    const Index depth = (queries.head_dim + 1) / 2;
    T* output = state.output + strip * queries.value_dim + within;
    if (seen.count == 0) {
      for (Index d = 0; first && d < queries.value_dim; ++d) {
        for (int j = 0; j < Vectors; ++j) {
          S::store(output + d * lanes + j * S::width, S::broadcast(0));
        }
      }
      return;
    }
    attend_strip(
        PairTask<T, Vectors>{
            &keys, seen.first, seen.count, queries.packed + strip * 2 * depth + 2 * within,
            queries.scores + within, reinterpret_cast<std::uint16_t*>(queries.scores) + 2 * within,
            output, state.maximum + lane, state.sum + lane, queries.factor, depth,
            queries.value_dim, static_cast<int>(lane), queries.coming},
        first);
  }

  HEED_SIMD static void attend_block(const PairKeys& keys, const PairQueries<T>& queries,
                                     const SoftmaxState<T>& state, bool first) {
    for_each_width<PairTable>(keys, queries.count, [&](auto vectors, Index lane) HEED_LAMBDA {
      attend_lanes<vectors>(keys, queries, state, lane, first);
    });
  }
  HEED_KERNEL static void attend(const PairKeys& keys, const PairQueries<T>& queries,
                                 const SoftmaxState<T>& state, bool first) {
    attend_block(keys, queries, state, first);
    PairKeys block = keys;
    for (Index i = 1; i < keys.blocks; ++i) {
      block.advance();
      attend_block(block, queries, state, false);
    }
  }
};
