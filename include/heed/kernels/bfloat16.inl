// SPDX-License-Identifier: MIT
// Numbers in bfloat16 that are multiplied as T: conversions, of which double has one, and decoding.
// Included by part.inl, after the decoding kernels of part 1.

template <class T>
struct Bfloat16Table {
  using S = Lanes<T>;

  /// Like core/bfloat16.hpp.
  HEED_SIMD static std::uint16_t narrowed(T value) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }

  HEED_SIMD static void widen_row(const std::uint16_t* from, Index step, Index columns, T* to) {
    Index column = 0;
#if HEED_SIMD_BYTES != 0
    if constexpr (sizeof(T) == 4) {
      if (step == 1) {
        for (; column + 4 * S::width <= columns; column += 4 * S::width) {
          HEED_UNROLL for (int j = 0; j < 4; ++j) {
            S::store(to + column + j * S::width, load_wide<S>(from + column + j * S::width));
          }
        }
        for (; column + S::width <= columns; column += S::width) {
          S::store(to + column, load_wide<S>(from + column));
        }
      }
    }
#endif
    for (; column < columns; ++column) to[column] = widened(from[column * step]);
  }
  HEED_KERNEL static void widen(MatrixRef<std::uint16_t> from, Index rows, Index columns, T* to) {
    if (from.column_stride == 1 && from.row_stride == columns) {
      return widen_row(from.data, 1, rows * columns, to);
    }
    for (Index row = 0; row < rows; ++row) {
      widen_row(from.data + row * from.row_stride, from.column_stride, columns, to + row * columns);
    }
  }

  HEED_SIMD static void put(std::uint16_t bits, std::uint16_t& to) { to = bits; }
  HEED_SIMD static void put(std::uint16_t bits, T& to) { to = widened(bits); }

  /// Rounded vectors, in bits or in T.
  HEED_SIMD static void put_words(WholeWords words, std::uint16_t* to) {
    store_lower_halves(to, words >> 16);
  }
  HEED_SIMD static void put_words(WholeWords words, T* to) {
    S::store(to, (typename S::V)(words & 0xffff0000));
  }
  HEED_SIMD static void put_words(WholeWords first, WholeWords second, std::uint16_t* to) {
    store_lower_halves(to, first >> 16, second >> 16);
  }
  HEED_SIMD static void put_words(WholeWords first, WholeWords second, T* to) {
    put_words(first, to);
    put_words(second, to + S::width);
  }
  HEED_SIMD static WholeWords rounded_vector(const T* from) {
    return rounded_to_bfloat16(S::load(from));
  }
  /// A row rounded, if it can be two vectors at a time.
  template <class To>
  HEED_SIMD static void round_row(const T* from, Index step, Index columns, To* to) {
    Index column = 0;
#if HEED_SIMD_BYTES != 0
    if (step == 1) {
      for (; column + 2 * S::width <= columns; column += 2 * S::width) {
        put_words(rounded_vector(from + column), rounded_vector(from + column + S::width),
                  to + column);
      }
      if (column + S::width <= columns) {
        put_words(rounded_vector(from + column), to + column);
        column += S::width;
      }
    }
#endif
    for (; column < columns; ++column) put(narrowed(from[column * step]), to[column]);
  }
  template <class To>
  HEED_KERNEL static void round(MatrixRef<T> from, Index rows, Index columns, To* to,
                                Index to_row) {
    if (from.column_stride == 1 && from.row_stride == columns && to_row == columns) {
      return round_row(from.data, 1, rows * columns, to);
    }
    for (Index row = 0; row < rows; ++row, to += to_row) {
      round_row(from.data + row * from.row_stride, from.column_stride, columns, to);
    }
  }
};

// Short sequences in bfloat16.

#if HEED_SIMD_BYTES >= 32
/// The heads of a run in bfloat16: queries are widened as they are packed, keys and values head by
/// head, and results rounded a vector of queries at a time.
template <class T>
struct WidenedHeads {
  using S = Lanes<T>;
  const ShortForwardArgs<T>& run;
  const ShortBits<T>& bits;
  MatrixRef<T> keys{bits.wide_keys, run.head_dim};
  MatrixRef<T> values{bits.wide_values, run.value_dim};
  MatrixRef<std::uint16_t> queries = {}, key_bits = {}, value_bits = {};
  std::uint16_t* out = nullptr;
  Index key_head = -1;  // whose keys and values are there

  HEED_SIMD void take(Index head, Index its_key_head) {
    queries = bits.queries.ahead(head * run.query_head);
    out = bits.out + head * run.out_head;
    if (its_key_head == key_head) return;
    key_head = its_key_head;
    key_bits = bits.keys.ahead(key_head * run.key_head);
    value_bits = bits.values.ahead(key_head * run.value_head);
    Bfloat16Table<T>::widen(key_bits, run.key_count, run.head_dim, bits.wide_keys);
    Bfloat16Table<T>::widen(value_bits, run.key_count, run.value_dim, bits.wide_values);
  }
  HEED_SIMD T* out_of(Index) const { return run.out; }
  HEED_SIMD void pack(Index query, Index count) const {
    pack_lanes<S>(queries.data + query * queries.row_stride, queries.row_stride, Index{1}, count,
                  run.head_dim, run.query_factor, run.packed, S::width);
  }
  HEED_SIMD void put(Index query, Index count) const {
    Bfloat16Table<T>::round(MatrixRef<T>{run.out, run.out_row, 1}, count, run.value_dim,
                            out + query * bits.out_row, bits.out_row);
  }
  HEED_SIMD void announce() const {
    ShortForwardTable<T>::announce_next(run, queries, key_bits, value_bits,
                                        MatrixRef<std::uint16_t>{out, bits.out_row, 1});
  }
};
template <class T>
HEED_KERNEL void attend_short_bits(const ShortForwardArgs<T>& run, const ShortBits<T>& bits) {
  ShortForwardTable<T>::attend_heads(run, WidenedHeads<T>{run, bits});
}
#endif

// Decoding over keys and values in bfloat16, which are widened in registers: with the bits of
// attend_keys.inl over widened ones, from half the memory.

#if HEED_SIMD_BYTES == 64
/// Scores with vectors of 64 bytes. Words of two columns are transposed.
template <class T>
struct BitScores {
  using S = Lanes<T>;
  static constexpr Index width = S::width;
  static constexpr Index lanes = DecodeScores<T>::lanes;
  static constexpr int most_rows = DecodeScores<T>::most_rows;
  static constexpr Index line = numbers_in_line<std::uint16_t>;

  /// The scores of the rows from `row` on, at most `Rows`, over the `Vectors` vectors of keys at
  /// `first`, the `key`th of the block. A single row takes two vectors: the sums of one would wait
  /// for each other.
  template <int Rows, int Vectors, bool Near>
  HEED_KERNEL static void score(const std::uint16_t* first, Index stride, const QueryRows<T>& rows,
                                Index row, Index key, StepAhead<Near> ahead) {
    constexpr int words = static_cast<int>(bit_columns) / 2;
    const T* query[Rows];
    typename S::V scores[Rows][Vectors] = {};
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      query[r] = row_or_last(rows.rows + row * rows.head_dim, rows.head_dim, rows.count - row, r);
    }
    for (Index d = 0; d < rows.head_dim; d += bit_columns) {
      typename S::V columns[Vectors][words];
      const std::uint16_t* from = first + d;
      // Half of the lines of 32 columns, then the others.
      const std::uint16_t* coming =
          from + (d % line == 0 ? 0 : Vectors * words * stride - bit_columns);
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        from = load_transposed<S>(from, stride, columns[j]);
      }
      HEED_UNROLL for (int i = 0; i < words; ++i) {
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          ahead.fetch(coming);
          coming += stride;
          asm("" : "+r"(coming));  // as in load_transposed
        }
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          const auto bits = (typename S::Ints)columns[j][i];
          const auto low = (typename S::V)(bits << 16), high = (typename S::V)(bits & ~0xffff);
          HEED_UNROLL for (int r = 0; r < Rows; ++r) {
            const T* const numbers = query[r] + d + 2 * i;
            scores[r][j] = S::fma(S::broadcast(numbers[0]), low, scores[r][j]);
            scores[r][j] = S::fma(S::broadcast(numbers[1]), high, scores[r][j]);
          }
        }
      }
    }
    T* to = rows.scores + score_index(rows, row, key);
    HEED_UNROLL for (int r = 0; r < Rows; ++r, to += lanes) {
      if (row + r >= rows.count) break;
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) S::store(to + j * width, scores[r][j]);
    }
  }

  /// The same of all rows over one vector of keys.
  template <bool Near>
  HEED_SIMD static void score_rows(const std::uint16_t* first, Index stride,
                                   const QueryRows<T>& rows, Index key, StepAhead<Near> ahead) {
    const auto nothing = StepAhead<Near>::none(first);
    for (Index row = 0; row < rows.count; ahead = nothing) {
      const Index left = rows.count - row;
      if (left > decoded_at_once) {
        score<most_rows, 1, Near>(first, stride, rows, row, key, ahead);
        row += most_rows;
      } else if (left == 3) {
        score<three_rows, 1, Near>(first, stride, rows, row, key, ahead);
        row += 3;
      } else if (left > 1) {
        score<decoded_at_once, 1, Near>(first, stride, rows, row, key, ahead);
        row += decoded_at_once;
      } else {
        score<single_row, 1, Near>(first, stride, rows, row, key, ahead);
        ++row;
      }
    }
  }
  /// The scores over whole vectors of keys; returns where they end. Processors that prefetch near
  /// do not follow the rows of two vectors of keys.
  HEED_SIMD static Index score_whole(const KeyBlock<std::uint16_t>& keys,
                                     const QueryRows<T>& rows) {
    const MatrixRef<std::uint16_t>& from = keys.keys;
    Index key = 0;
    with_near(rows, [&](auto near) HEED_LAMBDA {
      constexpr int wide = single_row == 1 && !near ? 2 : 1;
      const auto ahead = [&](Index step) HEED_LAMBDA {
        return StepAhead<near>::of(rows, lines_after(keys, rows, key, step), from, rows.head_dim,
                                   keys.count, key, step, next_of(keys, rows));
      };
      for (; rows.count == 1 && key + wide * width <= keys.count; key += wide * width) {
        score<single_row, wide, near>(from.data + key * from.row_stride, from.row_stride, rows, 0,
                                      key, ahead(wide * width));
      }
      for (; key + width <= keys.count; key += width) {
        score_rows<near>(from.data + key * from.row_stride, from.row_stride, rows, key,
                         ahead(width));
      }
    });
    return key;
  }
};
template <class T>
using BitValues = DecodeValues<T, std::uint16_t>;
#elif HEED_SIMD_BYTES == 32
template <class T>
using BitScores = HalvesScores<T, std::uint16_t>;
template <class T>
using BitValues = HalvesValues<T, std::uint16_t>;
#endif

#if HEED_SIMD_BYTES >= 32
template <class T>
struct BitDecode {
  HEED_KERNEL static void scores(const KeyBlock<std::uint16_t>& keys, const QueryRows<T>& rows) {
    const Index key = BitScores<T>::score_whole(keys, rows);
    if (key < keys.count) {
      const auto lines = lines_after(keys, rows, key, bit_keys);
      const auto* const last = last_keys(keys, rows, key);
#if HEED_SIMD_BYTES == 64
      const StepAhead<true> ahead{lines};
#else
      const auto& ahead = lines;
#endif
      BitScores<T>::score_rows(last, rows.head_dim, rows, key, ahead);
    }
  }
  /// Copies the last keys, fewer than are scored at a time, and repeats the last of them.
  HEED_SIMD static const std::uint16_t* last_keys(const KeyBlock<std::uint16_t>& keys,
                                                  const QueryRows<T>& rows, Index key) {
    auto* const copies = reinterpret_cast<std::uint16_t*>(rows.packed);
    const auto bytes = static_cast<std::size_t>(rows.head_dim) * sizeof(std::uint16_t);
    for (Index i = 0; i < bit_keys; ++i) {
      const auto* from = row_or_last(keys.keys.data, keys.keys.row_stride, keys.count, key + i);
      __builtin_memcpy(copies + i * rows.head_dim, from, bytes);
    }
    return copies;
  }
  static constexpr Index bit_keys = 16;  // at a time

  HEED_KERNEL static void attend(const KeyBlock<std::uint16_t>& keys, const QueryRows<T>& rows) {
    KeyBlock<T> block;
    block.count = keys.count;
    DecodeTable<T>::softmax(block, rows);
    BitValues<T>::add_whole(keys, rows);
  }
};
#endif

template <class T>
const Bfloat16Kernels<T>& bfloat16_table() {
  using K = Bfloat16Table<T>;
  if constexpr (sizeof(T) != 4) {
    static constexpr Bfloat16Kernels<T> entries{K::widen, nullptr, nullptr,
                                                nullptr,  nullptr, nullptr};
    return entries;
  } else {
#if HEED_SIMD_BYTES >= 32
    using Decode = BitDecode<T>;
    static constexpr Bfloat16Kernels<T> entries{K::widen,
                                                K::template round<std::uint16_t>,
                                                K::template round<T>,
                                                Decode::scores,
                                                Decode::attend,
                                                attend_short_bits<T>};
#else
    static constexpr Bfloat16Kernels<T> entries{
        K::widen, K::template round<std::uint16_t>, K::template round<T>, nullptr, nullptr,
        nullptr};
#endif
    return entries;
  }
}
