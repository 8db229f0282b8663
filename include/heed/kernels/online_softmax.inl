// SPDX-License-Identifier: MIT
// The online softmax (Milakov and Gimelshein 2018) with a maximum that moves lazily, written once
// for strips of queries and for rows, in the scalar type and in bfloat16 pairs; and the draws of
// dropout, which leaves weights out. Included by part.inl.

/// The largest of score(key) for 0 <= key < count, or lowest(). Of four keys in turn, since each
/// maximum waits for the one before it.
template <class S, class Score>
HEED_SIMD typename S::V largest_of(Index count, const Score& score) {
  constexpr int chains = 4;
  typename S::V largest[chains];
  HEED_UNROLL for (int i = 0; i < chains; ++i) {
    largest[i] = S::broadcast(LaneTypes<typename S::Scalar>::lowest);
  }
  Index key = 0;
  for (; key + chains <= count; key += chains) {
    HEED_UNROLL for (int i = 0; i < chains; ++i) largest[i] = S::max(largest[i], score(key + i));
  }
  for (; key < count; ++key) largest[0] = S::max(largest[0], score(key));
  return S::max(S::max(largest[0], largest[1]), S::max(largest[2], largest[3]));
}

/// Moves the maxima of a strip, in the lanes that need it, to the maximum of a block of keys, and
/// turns the stored scores into probabilities. A lane needs it if its sum over this block relative
/// to the old maximum (`block_sum`) exceeds the lazy limit; of a fresh state, every lane that sees
/// a score above lowest() does.
/// For vector j of lanes, largest_score(task, j) is the largest visible score,
/// raised_maximum(task, old, found) the maximum that this makes, and exponentiate(task, j, maximum)
/// turns the scores into probabilities and returns their sums.
template <class Task>
HEED_KERNEL void rescale(const Task& task, bool first, const typename Task::T* block_sum) {
  using S = typename Task::S;
  for (int j = 0; j < Task::lanes / S::width; ++j) {
    const int lane = j * S::width;
    const auto old = S::load(task.maximum + lane);
    const auto found = largest_score(task, j);
    const auto moves =
        first ? S::greater(found, old)
              : S::greater(S::load(block_sum + lane), S::broadcast(lazy_limit<typename Task::T>));
    const auto maximum = S::select(moves, raised_maximum(task, old, found), old);
    const auto factor = exp2<S>(old - maximum);
    const auto total = exponentiate(task, j, maximum);
    S::store(task.maximum + lane, maximum);
    S::store(task.sum + lane, first ? total : S::fma(S::load(task.sum + lane), factor, total));
    for (Index d = 0; !first && d < task.value_dim; ++d) {
      auto* at = task.output + d * task.stride + lane;
      S::store(at, S::load(at) * factor);
    }
  }
}

/// Adds one block of keys to the softmax of one strip of queries: score_modified(task) stores
/// scores that are modified, sum_block(task, totals) makes probabilities relative to the current
/// maxima and sums them, score_again(task) stores scores again where those took their place, and
/// add_block(task, accumulate) adds the values.
template <class Task>
HEED_KERNEL void attend_strip(const Task& task, bool first) {
  using S = typename Task::S;
  using T = typename Task::T;
  alignas(64) T totals[Task::lanes];
  score_modified(task);
  bool moves = first;
  if (!first) {
    sum_block(task, totals);
    const auto limit = S::broadcast(lazy_limit<T>);
    for (int lane = 0; lane < Task::lanes; lane += S::width) {
      moves = moves || S::any(S::greater(S::load(totals + lane), limit));
    }
  }
  if (moves) {
    score_again(task);
    rescale(task, first, totals);
  } else {
    for (int lane = 0; lane < Task::lanes; lane += S::width) {
      S::store(task.sum + lane, S::load(task.sum + lane) + S::load(totals + lane));
    }
  }
  add_block(task, !first);
}

/// Moves the maximum of one row of `rows` and scales its output; returns the factor.
template <class S, class Rows>
HEED_SIMD typename S::V move_maximum(const Rows& rows, Index row, typename S::Scalar maximum) {
  const auto factor = exp2<S>(S::broadcast(rows.maximum[row] - maximum));
  rows.maximum[row] = maximum;
  auto* output = rows.output + row * rows.output_stride;
  for (Index d = 0; d < rows.output_stride; d += S::width) {
    S::store(output + d, S::load(output + d) * factor);
  }
  return factor;
}
/// sum · factor + total.
template <class S>
HEED_SIMD typename S::Scalar rescaled_sum(typename S::Scalar sum, typename S::V factor,
                                          typename S::Scalar total) {
  typename S::Scalar result[S::width];
  S::store(result, S::fma(S::broadcast(sum), factor, S::broadcast(total)));
  return result[0];
}

/// The draws of dropout of attention weights.
template <class Wide>
struct DropoutTable {
  using S = Lanes<Wide>;
  using Philox = PhiloxLanes<Wide>;
  using U = typename Philox::U;
  static constexpr int width = Philox::width;

  /// One bit per lane, set if its draw is at least `dropped`, both below 2^32.
  HEED_SIMD static std::uint64_t kept(U draws, std::uint64_t dropped) {
    const U below = draws - dropped;  // negative, with its top bit set, if dropped
    constexpr std::uint64_t all = (std::uint64_t{1} << width) - 1;
#if HEED_SIMD_BYTES == 0 || !defined(__x86_64__)
    return below >> 63 ^ all;
#elif HEED_SIMD_BYTES == 64
    typedef long long L __attribute__((vector_size(64)));
    return static_cast<unsigned char>(__builtin_ia32_cvtq2mask512((L)below)) ^ all;
#elif HEED_SIMD_BYTES == 32
    return static_cast<unsigned>(__builtin_ia32_movmskpd256((typename S::V)below)) ^ all;
#else
    return static_cast<unsigned>(__builtin_ia32_movmskpd((typename S::V)below)) ^ all;
#endif
  }

  /// One vector of counters from `lane` on.
  HEED_SIMD static void draw_some(const DropoutLanes& at, Index lane, std::uint64_t (&words)[8]) {
    const U ramp = Philox::ramp(static_cast<std::uint64_t>(lane));
    U c[4] = {Philox::multiply(ramp, U{} + at.group_step) + at.group,
              Philox::multiply(ramp, U{} + at.query_step) + at.query, U{} + at.head,
              U{} + at.batch};
    Philox::mix(c, at.key);
    HEED_UNROLL for (int i = 0; i < 4; ++i) {
      words[2 * i] |= kept(c[i] & 0xFFFF, at.dropped) << lane;
      words[2 * i + 1] |= kept(c[i] >> 16 & 0xFFFF, at.dropped) << lane;
    }
  }

  HEED_KERNEL static void draw(const DropoutLanes& counters, std::uint64_t (&words)[8]) {
    for (auto& word : words) word = 0;
    for (Index lane = 0; lane < counters.lanes; lane += width) draw_some(counters, lane, words);
  }
};

template <class Wide>
DropoutKernel dropout_draw() {
  return DropoutTable<Wide>::draw;
}
