// SPDX-License-Identifier: MIT
// A few queries over a block of keys on tiles: the counterpart of pair_decode.inl. Tiles multiply
// keys as they lie; values are added by vectors, as they lie too, in the order of tiles. So memory
// is the limit. Included by part.inl, after amx.inl and pair_decode.inl.

template <class Tiles, class T>
struct TileDecode {
  using S = Lanes<T>;
  using P = Pairs<T>;
  using V = typename S::V;
  using Pair = PairDecodeTable<T>;
  using Instructions = typename Tiles::Instructions;
  /// More rows take the products of tiles for values too, which have to be zipped for them.
  static constexpr Index most_lying = 8;

  /// Prefetches the lines of the block that comes next beside the products of this one.
  struct NextBlock {
    HEED_SIMD void operator()() {
      for (int i = 0; i < amx_side; ++i) lines.template fetch_line<2>();
    }
    LinesAhead lines;
  };

  /// packed[pair of columns][row][column % 2] of up to 16 rows; what the rest holds decides
  /// nothing.
  HEED_SIMD static void pack_queries(const PairRows<T>& rows, Index row, Index some) {
    const Index depth = 2 * rows.depth;
    if (some == 1) {  // three rows were copied no faster than transposed
      const std::uint16_t* from = rows.rows + row * depth;
      for (Index d = 0; d < depth; d += 2) {
        __builtin_memcpy(rows.packed + d * amx_side, from + d, 2 * sizeof(*from));
      }
      return;
    }
    for (Index d = 0; d < depth; d += amx_terms) {
      PairTable<T>::pack_square(rows.rows + row * depth + d, depth, rows.count - row,
                                rows.packed + d * amx_side, P::step);
    }
  }
  /// Stores the scores of some rows, which are in columns.
  HEED_SIMD static void turn_scores(const T* scores, Index keys, const PairRows<T>& rows, Index row,
                                    Index some) {
    if (some == 1) {
      for (Index key = 0; key < keys; key += S::width) {
        T* to = rows.scores + score_index(rows, row, key);
        HEED_UNROLL for (int i = 0; i < S::width; ++i) to[i] = scores[(key + i) * amx_side];
      }
      return;
    }
    for (Index key = 0; key < keys; key += S::width) {
      V turned[S::width];
      HEED_UNROLL for (int i = 0; i < S::width; ++i) {
        turned[i] = S::load(scores + (key + i) * amx_side);
      }
      transpose<S>(turned);
      V spill[S::width];
      HEED_UNROLL for (int i = 0; i < S::width; ++i) spill[i] = turned[i];
      for (Index i = 0; i < some; ++i) {
        S::store(rows.scores + score_index(rows, row + i, key), spill[i]);
      }
    }
  }
  HEED_KERNEL static void begin() { Instructions::begin(); }
  HEED_KERNEL static void end() { Instructions::end(); }
  /// Between begin() and end().
  HEED_KERNEL static void score_rows(const PairKeys& keys, const PairRows<T>& rows) {
    Instructions tiles;
    const Index depth = 2 * rows.depth, stride = keys.keys.row_stride;
    NextBlock next{
        lines_beyond(keys.keys, depth, keys.count, 0, keys.count, rows.next, rows.next_columns)};
    for (Index row = 0; row < rows.count; row += amx_side) {
      alignas(64) T scores[key_block * amx_side];
      const Index some = rows.count - row < amx_side ? rows.count - row : amx_side;
      pack_queries(rows, row, some);
      const PendingProduct<T> product{
          {keys.keys.data, stride},    (keys.count + amx_side - 1) / amx_side,
          {rows.packed, 2 * amx_side}, depth,
          {scores, amx_side},          false};
      row == 0 ? multiply_tiles(tiles, product, next) : multiply_tiles(tiles, product);
      turn_scores(scores, keys.count, rows, row, some);
    }
  }

  /// output += probabilities · values for up to 16 rows from `row` on.
  HEED_KERNEL static void add_rows(Tiles& tiles, const PairKeys& keys, const PairRows<T>& rows,
                                   Index row) {
    const Index some = rows.count - row < amx_side ? rows.count - row : amx_side;
    alignas(64) T sums[amx_side * amx_side] = {};
    for (Index d = 0; d < rows.value_dim; d += amx_side) {
      T* out = rows.output + row * rows.output_stride + d;
      for (Index i = 0; i < some; ++i) {
        S::store(sums + i * amx_side, S::load(out + i * rows.output_stride));
      }
      multiply_tiles(tiles, PendingProduct<T>{{rows.probabilities + row * row_keys, row_keys},
                                              1,
                                              {keys.values + 2 * d, 2 * rows.value_dim},
                                              whole_terms(keys.count),
                                              {sums, amx_side},
                                              true});
      for (Index i = 0; i < some; ++i) {
        S::store(out + i * rows.output_stride, S::load(sums + i * amx_side));
      }
    }
  }

  /// Like add_tiles_guarded, for one row.
  HEED_KERNEL static void add_row_guarded(const PairKeys& keys, const PairRows<T>& rows,
                                          Index row) {
    for (Index d = 0; d < rows.value_dim; d += S::width) {
      T* at = rows.output + row * rows.output_stride + d;
      auto sum = S::load(at);
      for (Index group = 0; group < keys.count; group += amx_terms) {
        TileChains<T> chains;
        const Index left = keys.count - group;
        const Index end = group + (left < amx_terms ? left : amx_terms);
        for (Index key = group; key < end; key += 2) {
          const bool low = Pair::seen(rows, row, key);
          const bool high = key + 1 < end && Pair::seen(rows, row, key + 1);
          const std::int32_t halves = (low ? 0xffff : 0) | (high ? ~0xffff : 0);
          chains.add(P::spread(rows.probabilities + row * row_keys + key),
                     P::load(keys.values + key * rows.value_dim + 2 * d) & halves);
        }
        sum = chains.added_to(sum);
      }
      S::store(at, sum);
    }
  }

  /// Adds the terms of a key, whose probability is in the upper halves of `weights`, to the sums of
  /// some rows and of `Lines` lines of columns: even ones, then odd ones of each line, as the
  /// halves of words are.
  template <int Rows, int Lines>
  HEED_SIMD static void add_key(const typename P::V (&columns)[Lines], const V (&weights)[Rows],
                                V (&chains)[Rows][2 * Lines]) {
    HEED_UNROLL for (int j = 0; j < Lines; ++j) {
      const V even = TileChains<T>::first_of(columns[j]);
      const V odd = TileChains<T>::second_of(columns[j]);
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        chains[r][2 * j] = S::fma(even, weights[r], chains[r][2 * j]);
        chains[r][2 * j + 1] = S::fma(odd, weights[r], chains[r][2 * j + 1]);
      }
    }
  }

  /// The values of the keys [key, end), a group, for some rows and the columns of `Lines` lines
  /// from `d` on, of which the last may be a part.
  template <int Rows, int Lines>
  HEED_KERNEL static void add_lying_rows(const PairKeys& keys, const PairRows<T>& rows, Index row,
                                         Index key, Index end, Index d, LinesAhead* lines) {
    const Index left = rows.value_dim - d, stride = keys.lying.row_stride;
    const std::uint16_t* weights[Rows];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      weights[r] = row_or_last(rows.probabilities, row_keys, rows.count, row + r);
    }
    V chains[2][Rows][2 * Lines] = {};
    const std::uint16_t* at = keys.lying.data + key * stride + d;
    for (; key < end; key += 2) {
      HEED_UNROLL for (int half = 0; half < 2; ++half, at += stride) {
        if (half == 1 && key + 1 == end) break;
        typename P::V columns[Lines];
        V some[Rows];
        HEED_UNROLL for (int j = 0; j < Lines; ++j) {
          columns[j] = Lines > 1 ? P::load(at + j * P::step) : P::load_upto(at, left);
          if (lines != nullptr) lines->template fetch_line<2>();
        }
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          const auto pair = P::spread(weights[r] + key);
          some[r] = half == 0 ? TileChains<T>::first_of(pair) : TileChains<T>::second_of(pair);
        }
        add_key<Rows, Lines>(columns, some, chains[half]);
      }
    }
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      if (row + r >= rows.count) break;
      T* out = rows.output + (row + r) * rows.output_stride + d;
      HEED_UNROLL for (int j = 0; j < Lines; ++j, out += P::step) {
        add_line(out, left - j * P::step > S::width, chains[0][r][2 * j] + chains[1][r][2 * j],
                 chains[0][r][2 * j + 1] + chains[1][r][2 * j + 1]);
      }
    }
  }
  /// Adds sums of even and odd columns to a line of the output, or to its first vector.
  HEED_SIMD static void add_line(T* out, bool whole, V even, V odd) {
    constexpr auto lanes = std::make_integer_sequence<int, S::width>();
    S::store(out, S::load(out) + alternately<0>(even, odd, lanes));
    if (whole) {
      S::store(out + S::width,
               S::load(out + S::width) + alternately<S::width / 2>(even, odd, lanes));
    }
  }
  template <int First, int... I>
  HEED_SIMD static V alternately(V even, V odd, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(even, odd, (First + I / 2 + I % 2 * S::width)...);
  }

  /// output += probabilities · values, from values read in place.
  template <int Rows, int Lines>
  HEED_SIMD static void add_group(const PairKeys& keys, const PairRows<T>& rows, Index key,
                                  Index end, Index& d, LinesAhead& lines) {
    for (; d + (Lines - 1) * P::step < rows.value_dim; d += Lines * P::step) {
      if (Lines > 1 && d + Lines * P::step > rows.value_dim) return;
      for (Index row = 0; row < rows.count; row += Rows) {
        add_lying_rows<Rows, Lines>(keys, rows, row, key, end, d, row == 0 ? &lines : nullptr);
      }
    }
  }
  HEED_KERNEL static void add_lying(const PairKeys& keys, const PairRows<T>& rows) {
    const auto& lying = keys.lying;
    auto lines = lines_beyond(lying, rows.value_dim, keys.count, 0, keys.count, rows.next,
                              rows.next_columns);
    for (Index key = 0; key < keys.count; key += amx_terms) {
      const Index end = key + amx_terms < keys.count ? key + amx_terms : keys.count;
      Index d = 0;
      if (rows.count == 1) {
        add_group<1, 4>(keys, rows, key, end, d, lines);
        add_group<1, 2>(keys, rows, key, end, d, lines);
        add_group<1, 1>(keys, rows, key, end, d, lines);
      } else {
        add_group<decoded_at_once, 1>(keys, rows, key, end, d, lines);
      }
    }
  }

  HEED_KERNEL static void attend_rows(const PairKeys& keys, const PairRows<T>& rows) {
    Pair::exponentiate_all(keys.count, rows);
    if (keys.lying.data != nullptr) {
      const DenormalsAreZero mode;
      return add_lying(keys, rows);
    }
    for (Index row = 0; row < rows.count; ++row) {
      std::uint16_t* probabilities = rows.probabilities + row * row_keys;
      for (Index key = keys.count; key < whole_terms(keys.count); ++key) probabilities[key] = 0;
    }
    if (keys.guard_values && rows.visible != nullptr) {
      const DenormalsAreZero mode;
      for (Index row = 0; row < rows.count; ++row) add_row_guarded(keys, rows, row);
      return;
    }
    Tiles tiles;
    for (Index row = 0; row < rows.count; row += amx_side) add_rows(tiles, keys, rows, row);
  }
};
