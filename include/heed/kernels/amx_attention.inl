// SPDX-License-Identifier: MIT
// The counterpart of pairs.inl for tiles. Lanes are queries, so keys are the rows of tiles as they
// lie in memory, probabilities leave the softmax as the pairs of keys that the second product
// reads, and values alone are turned. Keys keep their places in groups of amx_terms, which start at
// absolute multiples: a masked key is a term of zero.
// Included by part.inl, after amx_decode.inl and pairs.inl.

/// Products that tiles do during a softmax, so that tiles and vectors work at a time. A processor
/// looks some 500 instructions ahead, and one on tiles takes 52 cycles: behind several in a row
/// that wait for each other it would not see the softmax.
template <class Tiles, class T>
struct TileWork {
  /// Calls between() after each product of two tiles.
  template <class Between>
  HEED_SIMD void multiply(Between& between) {
    multiply_tiles(tiles, values, between);
    multiply_tiles(tiles, scores, between);
    values.row_tiles = scores.row_tiles = 0;
  }
  HEED_KERNEL void finish(CalledBetween between = {}) { multiply(between); }
  /// The same, with between() in one piece of code with tiles that work beside vectors.
  template <class Between>
  HEED_SIMD void finish_beside(Between& between) {
    if constexpr (Tiles::beside_vectors) {
      multiply(between);
    } else {
      finish(CalledBetween::of(between));
    }
  }

  Tiles tiles;
  // The scores come into the memory of the probabilities that the values are multiplied with.
  PendingProduct<T> values{};  // · probabilities of the tile of queries before
  PendingProduct<T> scores{};  // of the next tile of queries, or of the next keys
};

/// What the softmax needs to know. The scores of the 16 queries have no others between them.
template <class Scalar>
struct TileSoftmax : PairTask<Scalar, 1> {
  static constexpr Index score_row = amx_side;
};

/// A tile of queries and one block of keys. Scores pass through memory between tiles and softmax;
/// `values` of the keys are [value_dim][whole_terms(arranged)], with zeros after the last one.
template <class Tiles, class Scalar>
struct AmxTask : TileSoftmax<Scalar> {
  using T = Scalar;

  TileWork<Tiles, T>* work;
  mutable bool scored;  // the scores are there for the first who asks
  Index lane_tiles;     // that products take together
  Index tile;           // this one, of them

  static constexpr Index tile_scores = amx_side * key_block;  // from one tile's to the next one's

  HEED_SIMD Index value_stride() const { return whole_terms(this->keys->arranged); }
  HEED_SIMD const std::uint16_t* values(Index d) const {
    return this->keys->values + d * value_stride() + this->keys->before + this->first;
  }
  HEED_SIMD PendingProduct<T> score_product(Index tiles) const {
    const auto& rows = this->keys->keys;
    return {{rows.data + this->first * rows.row_stride, rows.row_stride},
            (this->count + amx_side - 1) / amx_side,
            {this->packed, 2 * this->stride},
            2 * this->depth,
            {this->scores, this->score_row, tile_scores},
            false,
            tiles};
  }
};

// What the online softmax does with a tile, as for PairTask.

template <class Tiles, class T>
HEED_SIMD void score_again(const AmxTask<Tiles, T>& task) {
  if (task.scored) {
    task.scored = false;
    return;
  }
  task.work->scores = task.score_product(1);
  task.work->finish();
}
/// exponentiate_pairs in steps of `Pairs` pairs of keys.
template <bool Masked, bool Limited, int Pairs, class T>
struct SoftmaxSteps {
  using V = typename Lanes<T>::V;

  HEED_SIMD void operator()() {
    if (key + 2 * Pairs > task.count) return;
    HEED_UNROLL for (int i = 0; i < Pairs; ++i, key += 2) {
      total = exponentiate_pair<Masked, Limited>(task, 0, base, key, total, terms);
    }
  }
  /// The sum of all probabilities, after the steps that are left.
  HEED_SIMD V finish() {
    for (; key + 2 <= task.count; key += 2) {
      total = exponentiate_pair<Masked, Limited>(task, 0, base, key, total, terms);
    }
    if (key == task.count) return total;
    return exponentiate_pair<Masked, Limited, true>(task, 0, base, key, total, terms);
  }

  TileSoftmax<T> task;  // a copy, so that it stays in registers whatever tiles read and write
  V base;
  WeightTerms<Lanes<T>> terms;
  V total{};
  Index key = 0;
};
template <bool Masked, bool Limited, int Pairs, class Tiles, class T>
HEED_KERNEL typename Lanes<T>::V exponentiate_beside(const AmxTask<Tiles, T>& task,
                                                     typename Lanes<T>::V maximum) {
  SoftmaxSteps<Masked, Limited, Pairs, T> steps{task, task.base_of(maximum),
                                                WeightTerms<Lanes<T>>::held()};
  task.work->finish_beside(steps);
  return steps.finish();
}
/// Does the work of tiles, spread evenly: up to one product for every four keys, or more.
template <bool Masked, bool Limited, class Tiles, class T>
HEED_SIMD typename Lanes<T>::V exponentiate_evenly(const AmxTask<Tiles, T>& task,
                                                   typename Lanes<T>::V maximum) {
  return 2 * task.depth + task.value_dim <= 4 * amx_terms
             ? exponentiate_beside<Masked, Limited, 2>(task, maximum)
             : exponentiate_beside<Masked, Limited, 1>(task, maximum);
}
template <bool Limited, class Tiles, class T>
HEED_SIMD typename Lanes<T>::V exponentiate_any(const AmxTask<Tiles, T>& task,
                                                typename Lanes<T>::V maximum) {
  return task.keys->words ? exponentiate_evenly<true, Limited>(task, maximum)
                          : exponentiate_evenly<false, Limited>(task, maximum);
}
template <class Tiles, class T>
HEED_SIMD typename Lanes<T>::V exponentiate(const AmxTask<Tiles, T>& task, int,
                                            typename Lanes<T>::V maximum) {
  return exponentiate_any<true>(task, maximum);
}
template <class Tiles, class T>
HEED_SIMD void sum_block(const AmxTask<Tiles, T>& task, T* totals) {
  using S = Lanes<T>;
  score_again(task);
  S::store(totals, exponentiate_any<false>(task, S::load(task.maximum)));
}

/// Output rows [d, d + rows) (+)= values · probabilities, for fewer rows than a tile has.
template <class Tiles, class T>
HEED_KERNEL void add_last_rows(const AmxTask<Tiles, T>& task, Index d, Index rows, Index depth,
                               bool accumulate) {
  using S = Lanes<T>;
  alignas(64) T sums[amx_side * amx_side] = {};
  for (Index r = 0; accumulate && r < rows; ++r) {
    S::store(sums + r * amx_side, S::load(task.output + (d + r) * task.stride));
  }
  multiply_tiles(task.work->tiles, PendingProduct<T>{{task.values(d), task.value_stride()},
                                                     1,
                                                     {task.probabilities, 2 * task.score_row},
                                                     depth,
                                                     {sums, amx_side},
                                                     accumulate});
  for (Index r = 0; r < rows; ++r) {
    S::store(task.output + (d + r) * task.stride, S::load(sums + r * amx_side));
  }
}

/// Like add_pairs_guarded: masked halves of pairs count as 0.
template <class Tiles, class T>
HEED_KERNEL void add_tiles_guarded(const AmxTask<Tiles, T>& task, bool accumulate) {
  using S = Lanes<T>;
  using P = Pairs<T>;
  for (Index d = 0; d < task.value_dim; ++d) {
    const std::uint16_t* values = task.values(d);
    T* at = task.output + d * task.stride;
    auto sum = accumulate ? S::load(at) : S::broadcast(0);
    for (Index group = 0; group < task.count; group += amx_terms) {
      TileChains<T> chains;
      const Index left = task.count - group, end = group + (left < amx_terms ? left : amx_terms);
      for (Index key = group; key < end; key += 2) {
        auto seen = P::where(task.visible(key, 0), 0xffff);
        if (key + 1 < end) seen |= P::where(task.visible(key + 1, 0), ~0xffff);
        chains.add(P::spread(values + key) & seen,
                   P::load(task.probabilities + key * task.score_row));
      }
      sum = chains.added_to(sum);
    }
    S::store(at, sum);
  }
}

template <class Tiles, class T>
HEED_SIMD void add_block(const AmxTask<Tiles, T>& task, bool accumulate) {
  using P = Pairs<T>;
  if (task.keys->guard_values) {
    const DenormalsAreZero mode;
    return add_tiles_guarded(task, accumulate);
  }
  const Index depth = whole_terms(task.count);
  for (Index key = task.count + task.count % 2; key < depth; key += 2) {
    P::store(task.probabilities + key * task.score_row, typename P::V{});
  }
  const Index whole = task.value_dim / amx_side, d = whole * amx_side;
  if (task.tile + 1 == task.lane_tiles) {
    constexpr Index step = 2 * AmxTask<Tiles, T>::tile_scores;
    task.work->values = {{task.values(0), task.value_stride()},
                         whole,
                         {task.probabilities - task.tile * step, 2 * task.score_row, step},
                         depth,
                         {task.output - task.tile * amx_side, task.stride},
                         accumulate,
                         task.lane_tiles};
  }
  if (d < task.value_dim) add_last_rows(task, d, task.value_dim - d, depth, accumulate);
}

// The entries of PairKernels.

template <class Tiles, class T>
struct TileTable {
  using S = Lanes<T>;
  using P = Pairs<T>;
  using Pair = PairTable<T>;
  static constexpr Index lanes = Pair::lanes;  // of packed queries

  HEED_SIMD static void clear(std::uint16_t* from, Index count) {
    for (Index i = 0; i < count; i += P::step) P::store(from + i, typename P::V{});
  }

  HEED_KERNEL static void pack(MatrixRef<std::uint16_t> rows, Index count, Index columns,
                               std::uint16_t* packed) {
    Pair::pack(rows, count, columns, packed);
    const Index used = (columns + 1) / 2, depth = whole_terms(columns) / 2;
    clear(packed + used * 2 * lanes, (depth - used) * 2 * lanes);
  }

  HEED_KERNEL static void zip(MatrixRef<std::uint16_t> rows, Index count, Index columns,
                              std::uint16_t* pairs) {
    Pair::zip(rows, count, columns, pairs);
    for (Index i = (count + count % 2) * columns; i < whole_terms(count) * columns; ++i)
      pairs[i] = 0;
  }

  /// Turns 16 columns of 32 rows, `count` of which exist.
  HEED_KERNEL static void turn_square(const std::uint16_t* rows, Index row_stride, Index count,
                                      std::uint16_t* turned, Index stride) {
    typename S::V pairs[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      WholeWords low{}, high{};
      const std::uint16_t* at = rows + 2 * i * row_stride;
      if (2 * i < count) low = load_widened(at);
      if (2 * i + 1 < count) high = load_widened(at + row_stride);
      pairs[i] = (typename S::V)(low | high << 16);
    }
    transpose<S>(pairs);
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      P::store(turned + i * stride, (typename P::V)pairs[i]);
    }
  }
  HEED_KERNEL static void turn(MatrixRef<std::uint16_t> rows, Index count, Index columns,
                               std::uint16_t* turned) {
    const Index stride = whole_terms(count);
    Index column = 0;
    for (; rows.column_stride == 1 && column + amx_side <= columns; column += amx_side) {
      for (Index row = 0; row < count; row += amx_terms) {
        turn_square(rows.data + row * rows.row_stride + column, rows.row_stride, count - row,
                    turned + column * stride + row, stride);
      }
    }
    for (; column < columns; ++column) {
      for (Index row = 0; row < stride; ++row) {
        turned[column * stride + row] =
            row < count ? Pair::element(rows, row, column) : std::uint16_t{0};
      }
    }
  }

  /// Queries whose products are computed together, first with the keys, then with the values: two
  /// tiles where a block of both does not fit into the first-level cache.
  HEED_SIMD static Index together(const PairQueries<T>& queries) {
    const Index columns = whole_terms(queries.head_dim) + queries.value_dim;
    return columns > 6 * amx_terms ? 2 * amx_side : amx_side;
  }
  using Task = AmxTask<Tiles, T>;

  /// What a tile of queries, from `lane` on, keeps during all blocks of keys; without keys if they
  /// see none. Members are written one by one, as they are read: a copy would read wider pieces
  /// than have just been written, and such a read waits until all stores before it, those of tiles
  /// included, are in the cache.
  HEED_SIMD static void set_queries(Task& task, TileWork<Tiles, T>& work, const PairKeys& keys,
                                    const PairQueries<T>& queries, const SoftmaxState<T>& state,
                                    Index lane) {
    const Index most = together(queries), first = lane & -most, left = queries.count - first;
    const auto seen = Pair::seen_keys(keys, first, most);
    const Index before = seen.first & (amx_terms - 1);
    task.work = &work;
    task.first = seen.first - before;
    task.count = seen.count == 0 ? 0 : seen.count + before;
    task.packed = queries.packed + 2 * lane;
    task.output = state.output + lane;
    task.maximum = state.maximum + lane;
    task.sum = state.sum + lane;
    task.factor = queries.factor;
    task.depth = whole_terms(queries.head_dim) / 2;
    task.value_dim = queries.value_dim;
    task.first_lane = static_cast<int>(lane);
    task.lane_tiles = ((left < most ? left : most) + amx_side - 1) / amx_side;
    task.tile = (lane - first) / amx_side;
  }
  /// The same for a block of keys, of tiles whose products are computed together and whose scores
  /// lie one behind the other.
  HEED_SIMD static void set_keys(Task* tasks, const PairKeys& keys, T* scores) {
    for (Index tile = 0; tile < tasks->lane_tiles; ++tile, scores += Task::tile_scores) {
      tasks[tile].keys = &keys;
      tasks[tile].scores = scores;
      tasks[tile].probabilities = reinterpret_cast<std::uint16_t*>(scores);
      tasks[tile].scored = true;
    }
  }
  /// During the softmax of some queries, tiles multiply the values for the queries before, and the
  /// scores of the next ones, or of the first ones with the next block of keys.
  HEED_KERNEL static void attend(const PairKeys& keys, const PairQueries<T>& queries,
                                 const SoftmaxState<T>& state, bool first) {
    TileWork<Tiles, T> work;
    const Index most = together(queries), strips = (queries.count + most - 1) / most;
    Task tasks[query_block / amx_side];
    const Index other = strips == 1 ? 2 : 0;  // to tasks that the only strip takes in turn
    for (Index lane = 0; lane < queries.count; lane += amx_side) {
      Task* task = tasks + lane / amx_side;
      set_queries(*task, work, keys, queries, state, lane);
      if (other != 0) set_queries(task[other], work, keys, queries, state, lane);
    }
    PairKeys blocks[] = {keys, keys};  // in turn, like the memory of scores
    if (keys.blocks > 1) blocks[1].advance();
    const auto first_task = [&](Index turn, Index strip) HEED_LAMBDA {
      return tasks + strip * (most / amx_side) + turn * other;
    };
    const auto begin = [&](Index turn, Index block, Index strip) HEED_LAMBDA {
      Task* task = first_task(turn, strip);
      set_keys(task, blocks[block % 2], queries.scores + turn * most * key_block);
      work.scores = task->score_product(task->lane_tiles);
    };
    begin(0, 0, 0);
    work.finish();
    Index turn = 0;
    for (Index block = 0; block < keys.blocks; ++block) {
      const bool begins = first && block == 0;
      for (Index strip = 0; strip < strips; ++strip, turn ^= 1) {
        const Task* task = first_task(turn, strip);
        for (; task->tile + 1 < task->lane_tiles; ++task) attend_task(*task, begins);
        const bool last = strip + 1 == strips;
        if (!last || block + 1 < keys.blocks) begin(turn ^ 1, block + last, last ? 0 : strip + 1);
        attend_task(*task, begins);
      }
      if (block + 2 < keys.blocks) {
        blocks[block % 2].advance();
        blocks[block % 2].advance();
      }
    }
    work.finish();
  }
  /// One tile of queries, which may see no key.
  HEED_SIMD static void attend_task(const AmxTask<Tiles, T>& task, bool first) {
    if (task.count > 0) return attend_strip(task, first);
    task.work->finish();
    for (Index d = 0; first && d < task.value_dim; ++d) {
      S::store(task.output + d * lanes, S::broadcast(0));
    }
  }
};

template <class Tiles, class T>
const PairKernels<T>* tile_pair_table() {
  using K = TileTable<Tiles, T>;
  using D = TileDecode<Tiles, T>;
  constexpr auto narrow = Bfloat16Table<T>::template round<std::uint16_t>;
  static constexpr PairKernels<T> entries{
      amx_terms,           amx_side, D::most_lying, K::pack,  K::zip, K::turn,
      K::Pair::all_finite, narrow,   K::attend,     D::begin, D::end, D::score_rows,
      D::attend_rows};
  return &entries;
}

// See TileKernel.

/// The block product of tiles, like PairBlockProduct; the pairs of a row lie side by side. Depth is
/// a multiple of `group`.
template <class Tiles, class T>
struct TileProduct {
  static constexpr Index group = amx_terms;

  HEED_SIMD static MatrixRef<std::uint16_t> turned(const std::uint16_t* keys, Index count, Index) {
    return {keys, count, 2};
  }
  HEED_SIMD void multiply(const MatrixRef<std::uint16_t>& a, Index rows, const std::uint16_t* b,
                          Index b_row, Index lanes, Index depth, T* sums, Index sums_row,
                          bool accumulate) {
    multiply_tiles(tiles, PendingProduct<T>{{a.data, a.row_stride},
                                            rows / amx_side,
                                            {b, b_row},
                                            depth,
                                            {sums, sums_row},
                                            accumulate,
                                            (lanes + amx_side - 1) / amx_side});
  }
  HEED_KERNEL static void once(const std::uint16_t* a, Index a_row, Index rows,
                               const std::uint16_t* b, Index b_row, Index lanes, Index depth,
                               T* sums, Index sums_row, bool accumulate) {
    TileProduct product;
    product.multiply({a, a_row, 2}, rows, b, b_row, lanes, depth, sums, sums_row, accumulate);
  }

  Tiles tiles;
};
