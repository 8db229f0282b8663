// SPDX-License-Identifier: MIT
// What scores.inl and attend.inl do, in products of pairs. Included by part.inl, after pairs.inl.
// Pairs stand along head_dim for scores and along keys for values. Which two keys make a pair
// decides bits: it is always an even position and the next one.

/// So small that narrow_weight is exactly 0.
template <class T>
inline constexpr T masked_pair_exponent{-254};

/// One tile of queries taking in one block of keys.
template <class T, int Vectors>
struct PairTask {
  using S = Lanes<T>;
  static constexpr int lanes = Vectors * S::width;
  static constexpr Index stride = tile_stride<S>;

  PairKeys keys;
  Index first;                   // the first key that a lane of the tile sees, even
  Index count;                   // keys from there on
  const std::uint16_t* packed;   // [head_dim / 2][lane][2]
  T* scores;                     // [key][lane], scratch
  std::uint16_t* probabilities;  // [key / 2][lane][2], in the memory of the scores
  T* output;                     // [value_dim][lane]
  T* maximum;                    // [lane]
  T* sum;                        // [lane]
  T factor;
  Index depth;  // pairs of head_dim
  Index value_dim;
  int first_lane;

  HEED_SIMD typename S::M visible(Index key, int vector) const {
    return S::lanes(keys.words[first + key] >> (first_lane + vector * S::width));
  }
  template <bool Masked>
  HEED_SIMD typename S::V weight(typename S::V score, typename S::V base, Index key,
                                 int vector) const {
    auto x = S::fma(score, S::broadcast(factor), base);
    if constexpr (Masked)
      x = S::select(visible(key, vector), x, S::broadcast(masked_pair_exponent<T>));
    return narrow_weight<S>(x);
  }
  /// What `weight` adds to scores.
  HEED_SIMD static typename S::V base_of(typename S::V maximum) {
    return S::broadcast(0) - (maximum + S::broadcast(weight_offset));
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
      const auto low = task.template weight<Masked>(scores[r][j], base, key + r, j);
      total = total + low;
      auto high = S::broadcast(0);
      if constexpr (Rows > 1) {
        high = task.template weight<Masked>(scores[r + 1][j], base, key + r + 1, j);
        total = total + high;
      }
      P::store(task.probabilities + (key + r) * task.stride + j * P::step, pair_of<P>(low, high));
    }
    S::store(totals + j * S::width, total);
  }
}

/// Scores of the keys [key, key + Rows); then probabilities, and their sums key by key, or, without
/// `totals`, the scores.
template <int Rows, class T, int Vectors>
HEED_KERNEL void score_pair_rows(const PairTask<T, Vectors>& task, Index key, T* totals) {
  using S = Lanes<T>;
  using P = Pairs<T>;
  typename S::V scores[Rows][Vectors];
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) scores[r][j] = S::broadcast(0);
  }
  const auto& keys = task.keys.keys;
  multiply_pairs<P, Rows, Vectors>(keys.data + (task.first + key) * keys.row_stride,
                                   keys.row_stride, 2, task.packed, 2 * task.stride, task.depth,
                                   scores);
  if (totals == nullptr) {
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        S::store(task.scores + (key + r) * task.stride + j * S::width, scores[r][j]);
      }
    }
    return;
  }
  if (task.keys.words) {
    weigh_pair_rows<true>(task, key, scores, totals);
  } else {
    weigh_pair_rows<false>(task, key, scores, totals);
  }
}

template <class T, int Vectors>
HEED_SIMD void score_pair_block(const PairTask<T, Vectors>& task, T* totals) {
  Index key = 0;
  for (; key + 6 <= task.count; key += 6) score_pair_rows<6>(task, key, totals);
  for (; key + 2 <= task.count; key += 2) score_pair_rows<2>(task, key, totals);
  if (key < task.count) score_pair_rows<1>(task, key, totals);
}

/// Probabilities of one vector's stored scores, over them; and their sum.
template <bool Masked, class T, int Vectors>
HEED_SIMD typename Lanes<T>::V soften_pairs(const PairTask<T, Vectors>& task, int vector,
                                            typename Lanes<T>::V maximum) {
  using S = Lanes<T>;
  using P = Pairs<T>;
  const auto base = task.base_of(maximum);
  auto total = S::broadcast(0);
  for (Index key = 0; key < task.count; key += 2) {
    const T* at = task.scores + key * task.stride + vector * S::width;
    const auto low = task.template weight<Masked>(S::load(at), base, key, vector);
    total = total + low;
    auto high = S::broadcast(0);
    if (key + 1 < task.count) {
      high = task.template weight<Masked>(S::load(at + task.stride), base, key + 1, vector);
      total = total + high;
    }
    P::store(task.probabilities + key * task.stride + vector * P::step, pair_of<P>(low, high));
  }
  return total;
}

/// The larger of the maximum so far and the one found, which is a rounded product; those that
/// `weight` takes it from are not rounded. Where a rounding may outgrow weights, the maximum stands
/// below it, so that the largest score has a weight.
template <class S>
HEED_SIMD typename S::V pair_maximum(typename S::V old, typename S::V found) {
  const auto size = S::max(found, S::broadcast(0) - found);
  const auto low = S::fma(size, S::broadcast(-0x1p-22f), found);
  return S::max(old, S::select(S::greater(size, S::broadcast(0x1p24f)), low, found));
}

/// As `rescale` in attend.inl.
template <class T, int Vectors>
HEED_KERNEL void rescale_pairs(const PairTask<T, Vectors>& task, bool first, const T* block_sum) {
  using S = Lanes<T>;
  for (int j = 0; j < Vectors; ++j) {
    const int lane = j * S::width;
    const auto old = S::load(task.maximum + lane);
    const auto lowest = S::broadcast(std::numeric_limits<T>::lowest());
    auto found = lowest;
    for (Index key = 0; key < task.count; ++key) {
      auto x = S::load(task.scores + key * task.stride + lane) * S::broadcast(task.factor);
      if (task.keys.words) x = S::select(task.visible(key, j), x, lowest);
      found = S::max(found, x);
    }
    const auto moves = first ? S::greater(found, old)
                             : S::greater(S::load(block_sum + lane), S::broadcast(lazy_limit<T>));
    const auto maximum = S::select(moves, pair_maximum<S>(old, found), old);
    const auto factor = exp2<S>(old - maximum);
    const auto total = task.keys.words ? soften_pairs<true>(task, j, maximum)
                                       : soften_pairs<false>(task, j, maximum);
    S::store(task.maximum + lane, maximum);
    S::store(task.sum + lane, first ? total : S::fma(S::load(task.sum + lane), factor, total));
    for (Index d = 0; !first && d < task.value_dim; ++d) {
      T* at = task.output + d * task.stride + lane;
      S::store(at, S::load(at) * factor);
    }
  }
}

/// output rows [d, d + Rows) (+)= values · probabilities.
template <int Rows, class T, int Vectors>
HEED_KERNEL void add_pair_rows(const PairTask<T, Vectors>& task, Index d, bool accumulate) {
  using S = Lanes<T>;
  T* out = task.output + d * task.stride;
  typename S::V sums[Rows][Vectors];
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      sums[r][j] = S::broadcast(0);
      if (accumulate) sums[r][j] = S::load(out + r * task.stride + j * S::width);
    }
  }
  const Index row = 2 * task.value_dim;
  multiply_pairs<Pairs<T>, Rows, Vectors>(task.keys.values + task.first / 2 * row + 2 * d, 2, row,
                                          task.probabilities, 2 * task.stride, (task.count + 1) / 2,
                                          sums);
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      S::store(out + r * task.stride + j * S::width, sums[r][j]);
    }
  }
}

/// As `add_values_guarded` in attend.inl: halves of pairs that are masked count as 0.
template <class T, int Vectors>
HEED_KERNEL void add_pairs_guarded(const PairTask<T, Vectors>& task, bool accumulate) {
  using S = Lanes<T>;
  using P = Pairs<T>;
  for (Index d = 0; d < task.value_dim; ++d) {
    for (int j = 0; j < Vectors; ++j) {
      T* at = task.output + d * task.stride + j * S::width;
      auto sum = accumulate ? S::load(at) : S::broadcast(0);
      for (Index key = 0; key < task.count; key += 2) {
        const auto* pair = task.keys.values + (task.first + key) * task.value_dim + 2 * d;
        auto seen = (typename P::V)task.visible(key, j) & 0xffff;
        if (key + 1 < task.count) seen |= (typename P::V)task.visible(key + 1, j) << 16;
        sum = P::add_products(P::spread(pair) & seen,
                              P::load(task.probabilities + key * task.stride + j * P::step), sum);
      }
      S::store(at, sum);
    }
  }
}

/// One block of keys into the softmax of one tile of queries.
template <class T, int Vectors>
HEED_KERNEL void attend_pair_tile(const PairTask<T, Vectors>& task, bool first) {
  using S = Lanes<T>;
  alignas(64) T totals[PairTask<T, Vectors>::lanes] = {};
  bool settled = !first;
  if (!first) {
    score_pair_block(task, totals);
    for (const T total : totals) settled = settled && !(total > lazy_limit<T>);
  }
  if (settled) {
    for (int j = 0; j < Vectors; ++j) {
      T* sum = task.sum + j * S::width;
      S::store(sum, S::load(sum) + S::load(totals + j * S::width));
    }
  } else {
    score_pair_block<T, Vectors>(task, nullptr);
    rescale_pairs(task, first, totals);
  }
  if (task.keys.guard_values) return add_pairs_guarded(task, !first);
  Index d = 0;
  for (; d + 6 <= task.value_dim; d += 6) add_pair_rows<6>(task, d, !first);
  for (; d + 2 <= task.value_dim; d += 2) add_pair_rows<2>(task, d, !first);
  if (d < task.value_dim) add_pair_rows<1>(task, d, !first);
}
