// SPDX-License-Identifier: MIT
// What is prefetched, the product of micro tiles of attention and of layers in the scalar type, and
// transposes. Included by part.inl.

/// Prefetches nothing.
struct NothingAhead {
  template <int Level = 3>
  HEED_SIMD void fetch_line() {}
  template <int Lines = 1>
  HEED_SIMD void fetch(const void*) {}
};

/// Lines to prefetch one by one, in the order of memory. A micro tile reads six or eight rows
/// column by column, and a transpose sixteen: so read, memory gave 12 GB/s on a Zen 3 and 31 on a
/// Zen 5; line after line, 17.5 and 35.
struct LinesAhead {
  std::uintptr_t at;     // the next line
  std::uintptr_t end;    // of its row
  std::uintptr_t bytes;  // of a row
  std::uintptr_t skip;   // from the end of a row to the next row
  std::uintptr_t step;   // from line to line

  template <class T>
  HEED_SIMD static LinesAhead of(const T* first, Index row_stride, Index columns) {
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    const auto bytes = static_cast<std::uintptr_t>(columns) * sizeof(T);
    const auto stride = static_cast<std::uintptr_t>(row_stride) * sizeof(T);
    // Rows without gaps are one long row.
    const auto end = stride == bytes ? ~std::uintptr_t{0} : at + bytes;
    return {at, end, bytes, stride - bytes, 64};
  }
  /// The line at `place`, which is in the cache, again and again. Multiply-adds hide that too.
  template <class T>
  HEED_SIMD static LinesAhead none(const T* place) {
    return {reinterpret_cast<std::uintptr_t>(place), ~std::uintptr_t{0}, 0, 0, 0};
  }
  template <int Level = 3>
  HEED_SIMD void fetch_line() {
    __builtin_prefetch(reinterpret_cast<const void*>(at), 0, Level);  // NOLINT: it may end beyond
    at += step;
    if (at >= end) {
      at = end + skip;
      end = at + bytes;
    }
  }
};

/// Prefetches some rows, `columns` wide, into the first-level cache (Level = 3) or the second (2).
/// The empty assembler keeps g++ from leaving out calls of such a function.
template <int Level = 3, class T>
HEED_SHARED void prefetch_rows(const MatrixRef<T>& rows, Index first, Index count, Index columns) {
  asm volatile("");
  for (Index row = first; row < first + count; ++row) {
    for (Index column = 0; column < columns; column += numbers_in_line<T>) {
      __builtin_prefetch(rows.data + row * rows.row_stride + column, 0, Level);
    }
  }
}

/// Prefetches some of the rows that come: into the first-level cache if they are few and either
/// near or on a processor that prefetches near, else into the second.
template <class Coming>
HEED_SHARED void prefetch_some(Coming& coming) {
  constexpr Index nearby = Index{64} << 10;
  for (int i = 0; i < coming.count; ++i) {
    auto& [data, stride, width, count] = coming.matrices[i];
    const Index now = count < coming.at_once ? count : coming.at_once;
    if (coming.size <= nearby && (coming.near || !coming.far)) {
      prefetch_rows<3>(MatrixRef<char>{data, stride}, 0, now, width);
    } else {
      prefetch_rows<2>(MatrixRef<char>{data, stride}, 0, now, width);
    }
    data += now * stride;
    count -= now;
  }
}
/// The same, if there are any.
template <class Coming>
HEED_SIMD void prefetch_coming(Coming* coming) {
  if (coming != nullptr) prefetch_some(*coming);
}

/// What decoding prefetches during the `step` rows at `row` of `count`: what is read up to 8 kB
/// later (four steps of up to 2 kB, or two of up to 4), else the next step. Behind the last of
/// these rows come `next`, if known. From memory, decoding took 1.05 to 1.25 times as long with 2
/// or 4 kB instead of 8, and up to 1.15 times with 16 (Zen 5; a Zen 4 differs less).
template <class T>
HEED_SIMD LinesAhead lines_beyond(const MatrixRef<T>& rows, Index columns, Index count, Index row,
                                  Index step, const MatrixRef<T>& next, Index next_columns) {
  constexpr Index kilobyte = 1024 / Index{sizeof(T)};
  const Index size = step * columns;
  Index later = row + step;
  if (size <= 4 * kilobyte) {
    later += size <= 2 * kilobyte ? 3 * step : step;
  }
  if (later < count || next.data == nullptr) {
    if (later >= count) later = 0;
    return LinesAhead::of(rows.data + later * rows.row_stride, rows.row_stride, columns);
  }
  later -= (count + step - 1) / step * step;
  return LinesAhead::of(next.data + later * next.row_stride, next.row_stride, next_columns);
}

/// A vector of numbers, or of bfloat16, widened.
template <class S>
HEED_SIMD typename S::V load_wide(const typename S::Scalar* from) {
  return S::load(from);
}
template <class S>
HEED_SIMD typename S::V load_wide(const std::uint16_t* from) {
#if HEED_SIMD_BYTES == 32 && !defined(__clang__)
  // Both halves get all numbers as they are loaded, so that one shuffle puts each where it belongs.
  typedef long long Two __attribute__((vector_size(16)));
  typedef char Bytes __attribute__((vector_size(32)));
  constexpr char z = -1;  // a zero
  constexpr Bytes places{z, z, 0, 1, z, z, 2,  3,  z, z, 4,  5,  z, z, 6,  7,
                         z, z, 8, 9, z, z, 10, 11, z, z, 12, 13, z, z, 14, 15};
  Two numbers;
  __builtin_memcpy(&numbers, from, sizeof(numbers));
  const auto twice = (Bytes)__builtin_ia32_vbroadcastsi256(numbers);
  return (typename S::V)__builtin_ia32_pshufb256(twice, places);
#else
  return __builtin_bit_cast(typename S::V, load_widened(from) << 16);
#endif
}

/// The sums of a micro tile from memory, or to it; its rows are `row_stride` apart.
template <class S, int Rows, int Vectors>
HEED_SIMD void load_sums(typename S::V (&sums)[Rows][Vectors], const typename S::Scalar* from,
                         Index row_stride) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      sums[r][j] = S::load(from + r * row_stride + j * S::width);
    }
  }
}
template <class S, int Rows, int Vectors>
HEED_SIMD void store_sums(const typename S::V (&sums)[Rows][Vectors], typename S::Scalar* to,
                          Index row_stride) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      S::store(to + r * row_stride + j * S::width, sums[r][j]);
    }
  }
}

/// sums[r][lane] += Σ_k a(r, k) · b[k][lane], k in order, one fused multiply-add each: an element's
/// bits depend on its own row of a and column of b alone. a(r, k) is a[r · a_row + k · a_step],
/// read element by element, so any strides do; rows of b are `b_stride` apart. Each step prefetches
/// one line.
template <class S, int Rows, int Vectors, class Ahead = NothingAhead>
HEED_SIMD void multiply(const typename S::Scalar* a, Index a_row, Index a_step,
                        const typename S::Scalar* b, Index b_stride, Index depth,
                        typename S::V (&sums)[Rows][Vectors], Ahead ahead = {}) {
  for (Index k = 0; k < depth; ++k) {
    ahead.fetch_line();
    typename S::V lanes[Vectors];
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) lanes[j] = S::load(b + j * S::width);
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      const auto value = S::broadcast(a[r * a_row]);
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        sums[r][j] = S::fma(value, lanes[j], sums[r][j]);
      }
    }
    a += a_step;
    b += b_stride;
  }
}

/// A value that is known at compile time. That of the standard library, like its swap, would stay a
/// call where only kernels are optimized.
template <auto Value>
struct Known {
  HEED_SIMD constexpr operator decltype(Value)() const { return Value; }  // NOLINT: stands for it
};

/// Calls run(rows, row), with a Known number of rows, for each micro tile of `count` rows: `Most`
/// as long as there are so many, then fewer.
template <int Most, class Run>
HEED_SIMD void for_each_micro_tile(Index count, const Run& run) {
  Index row = 0;
  for (; row + Most <= count; row += Most) {
    if (fewer_rows == 4 && Most == 6 && count - row == 8) break;  // 4 and 4, not 6 and 2
    run(Known<Most>(), row);
  }
  if constexpr (fewer_rows > 2) {
    for (; row + fewer_rows <= count; row += fewer_rows) {
      run(Known<fewer_rows>(), row);
    }
  }
  for (; row + 2 <= count; row += 2) run(Known<2>(), row);
  if (row < count) run(Known<1>(), row);
}

/// c[r][lane] (+)= Σ_k a(r, k) · b[k][lane] for one micro tile; rows of c are `c_stride` apart.
template <class S, int Rows, int Vectors, class Ahead = NothingAhead>
HEED_KERNEL void micro_tile_product(const typename S::Scalar* a, Index a_row, Index a_step,
                                    const typename S::Scalar* b, Index b_stride, Index depth,
                                    typename S::Scalar* c, Index c_stride, bool accumulate,
                                    const Ahead& ahead = {}) {
  typename S::V sums[Rows][Vectors] = {};
  if (accumulate) load_sums<S>(sums, c, c_stride);
  multiply<S, Rows, Vectors>(a, a_row, a_step, b, b_stride, depth, sums, ahead);
  store_sums<S>(sums, c, c_stride);
}

/// Prefetches nothing in any micro tile.
struct NothingAheadOf {
  template <class Rows>
  HEED_SIMD NothingAhead operator()(Rows) const {
    return {};
  }
};

/// micro_tile_product for any number of rows of a and c. Each one prefetches what `ahead_of`
/// answers for its number of rows.
template <class S, int Vectors, class AheadOf = NothingAheadOf>
HEED_KERNEL void micro_tile_products(const typename S::Scalar* a, Index a_row, Index a_step,
                                     const typename S::Scalar* b, Index b_stride, Index depth,
                                     typename S::Scalar* c, Index c_stride, Index rows,
                                     bool accumulate, const AheadOf& ahead_of = {}) {
  for_each_micro_tile<rows_of<Vectors>>(rows, [&](auto some, Index row) HEED_LAMBDA {
    micro_tile_product<S, some, Vectors>(a + row * a_row, a_row, a_step, b, b_stride, depth,
                                         c + row * c_stride, c_stride, accumulate, ahead_of(some));
  });
}

// Transposes in registers go by blocks of 16 bytes: moving whole blocks, or numbers within them, is
// one instruction in every set; picking any numbers of two vectors is a slower one.

#if HEED_SIMD_BYTES != 0
template <class S>
inline constexpr int block_lanes = 16 / static_cast<int>(sizeof(typename S::Scalar));

/// Lane i of `low` becomes lane First::at(i) of both vectors side by side, that of `high` lane
/// First::at(i) + apart.
template <class S, class First, int apart, int... Lane>
HEED_SIMD void rearrange(typename S::V& low, typename S::V& high,
                         std::integer_sequence<int, Lane...>) {
  const auto a = low, b = high;
  low = __builtin_shufflevector(a, b, First::at(Lane)...);
  high = __builtin_shufflevector(a, b, (First::at(Lane) + apart)...);
}
/// Their first halves in `low`, the second ones in `high`.
template <class S>
struct Halves {
  static constexpr int apart = S::width / 2;
  static constexpr int at(int lane) { return lane < apart ? lane : lane + apart; }
};
/// Their even blocks in `low`, the odd ones in `high`.
template <class S>
struct EvenBlocks {
  static constexpr int apart = block_lanes<S>;
  static constexpr int at(int lane) { return lane + lane / apart * apart; }
};
/// Blocks of `count` numbers from the first and second vector in turn, from the first halves of
/// their blocks of 16 bytes in `low`, from the second halves in `high`.
template <class S, int count>
struct Interleaved {
  static constexpr int apart = block_lanes<S> / 2;
  static constexpr int at(int lane) {
    const int within = lane % block_lanes<S>, turn = within / count;
    return lane - within + turn / 2 * count + within % count + turn % 2 * S::width;
  }
};
template <class S, class How>
HEED_SIMD void rearrange(typename S::V& low, typename S::V& high) {
  rearrange<S, How, How::apart>(low, high, std::make_integer_sequence<int, S::width>());
}

template <class S>
HEED_SIMD void exchange(typename S::V& a, typename S::V& b) {
  const auto first = a;
  a = b;
  b = first;
}

/// Transposes of the blocks of 16 bytes, side by side, of as many vectors as a block has numbers.
template <class S>
HEED_SIMD void transpose_blocks(typename S::V* rows) {
  constexpr int block = block_lanes<S>;
  HEED_UNROLL for (int j = 0; j < block; j += 2) {
    rearrange<S, Interleaved<S, 1>>(rows[j], rows[j + 1]);
  }
  if constexpr (block == 4) {
    rearrange<S, Interleaved<S, 2>>(rows[0], rows[2]);
    rearrange<S, Interleaved<S, 2>>(rows[1], rows[3]);
    exchange<S>(rows[1], rows[2]);
  }
}
#endif

#if HEED_SIMD_BYTES >= 32
/// The vector of two halves.
template <class V, class Half, int... Lane>
HEED_SIMD V join(Half low, Half high, std::integer_sequence<int, Lane...>) {
  return __builtin_shufflevector(low, high, Lane...);
}

/// Half a vector from `low` and half a one from `high`, which saves a transpose the exchange of the
/// halves of two vectors.
template <class S>
HEED_SIMD typename S::V load_halves(const void* low, const void* high) {
  using T = typename S::Scalar;
  typedef T Half __attribute__((vector_size(HEED_SIMD_BYTES / 2), aligned(2), may_alias));
  const Half *a = static_cast<const Half*>(low), *b = static_cast<const Half*>(high);
#if HEED_SIMD_BYTES == 64 && !defined(__clang__)
  // g++ would load both and join them by a third instruction; clang 19 prints %t0 wrongly.
  typename S::V both;
  asm("vmovups %1, %t0" : "=v"(both) : "m"(*a));
  asm("vinsertf64x4 $1, %1, %0, %0" : "+v"(both) : "m"(*b));
  return both;
#else
  return join<typename S::V>(*a, *b, std::make_integer_sequence<int, S::width>());
#endif
}
#endif

/// A width × width transpose in registers. It begins with adjacent rows, which come from memory
/// first: beginning with rows a block apart, decoding waited up to 1.5 times as long for its keys.
template <class S>
HEED_SIMD void transpose(typename S::V (&rows)[S::width]) {
#if HEED_SIMD_BYTES == 0
  static_cast<void>(rows);
#else
  constexpr int block = block_lanes<S>;
  HEED_UNROLL for (int i = 0; i < S::width; i += block) transpose_blocks<S>(rows + i);
  HEED_UNROLL for (int i = 0; i < block && S::width > block; ++i) {
    HEED_UNROLL for (int j = i; j < S::width; j += 2 * block) {
      rearrange<S, Halves<S>>(rows[j], rows[j + block]);
    }
    if constexpr (S::width == 4 * block) {
      rearrange<S, EvenBlocks<S>>(rows[i], rows[i + 2 * block]);
      rearrange<S, EvenBlocks<S>>(rows[i + block], rows[i + 3 * block]);
      exchange<S>(rows[i + block], rows[i + 2 * block]);
    }
  }
#endif
}

#if HEED_SIMD_BYTES == 64
/// Half a vector of columns of `width` rows, `stride` apart, transposed: columns[i] is column i of
/// all rows. Loads put halves of two rows side by side, which takes the place of a quarter of the
/// instructions of `transpose`, and of half of its registers. A column may be a pair of numbers.
/// Returns where the next row begins.
template <class S, class Number>
HEED_SIMD const Number* load_transposed(const Number* first, Index stride,
                                        typename S::V (&columns)[S::width / 2]) {
  constexpr int block = block_lanes<S>;
  HEED_UNROLL for (int i = 0; i < S::width / 2; i += block) {
    const Number* second = first + block * stride;
    asm("" : "+r"(second));  // the compiler would keep an address for every row, most in memory
    HEED_UNROLL for (int j = 0; j < block; ++j) {
      columns[i + j] = load_halves<S>(first + j * stride, second + j * stride);
    }
    first = second + block * stride;
    asm("" : "+r"(first));
    transpose_blocks<S>(columns + i);
  }
  HEED_UNROLL for (int i = 0; i < block; ++i) {
    rearrange<S, EvenBlocks<S>>(columns[i], columns[i + block]);
  }
  return first;
}
#endif

/// Calls use(i, address of row i) for some rows, `stride` apart. The compiler would keep an address
/// for each of them, most in memory: here it counts them from four.
template <int Rows, class T, class Use>
HEED_SIMD void for_each_row(const T* first, Index stride, const Use& use) {
  constexpr int quarter = Rows < 4 ? 1 : Rows / 4;
  HEED_UNROLL for (int i = 0; i < Rows; ++i) {
    if (i > 0 && i % quarter == 0) {
      first += quarter * stride;
      asm("" : "+r"(first));
    }
    use(i, first + i % quarter * stride);
  }
}
/// Calls use(i, column i) for the first `width` columns of `width` rows, `stride` apart. `Halves`:
/// as in load_transposed, half of the columns after the other, but loaded at once, since the lines
/// of rows that lie apart by a power of two push each other out of the cache. Meanwhile `ahead`
/// fetches as many lines as are read.
template <class S, bool Halves, class Use, class Ahead>
HEED_SIMD void each_column(const typename S::Scalar* first, Index stride, Ahead& ahead,
                           const Use& use) {
  constexpr int line = 64 / static_cast<int>(sizeof(typename S::V));  // in vectors
#if HEED_SIMD_BYTES == 64
  if constexpr (Halves) {
    constexpr int block = block_lanes<S>, half = S::width / 2;
    typename S::V columns[2][half];
    HEED_UNROLL for (int i = 0; i < half; i += block) {
      const auto* second = first + block * stride;
      asm("" : "+r"(second));
      HEED_UNROLL for (int j = 0; j < block; ++j) {
        const auto *low = first + j * stride, *high = second + j * stride;
        columns[0][i + j] = load_halves<S>(low, high);
        columns[1][i + j] = load_halves<S>(low + half, high + half);
        ahead.template fetch_line<2>();
        ahead.template fetch_line<2>();
      }
      first = second + block * stride;
      asm("" : "+r"(first));
    }
    HEED_UNROLL for (int h = 0; h < 2; ++h) {
      HEED_UNROLL for (int i = 0; i < half; i += block) transpose_blocks<S>(columns[h] + i);
      HEED_UNROLL for (int i = 0; i < block; ++i) {
        rearrange<S, EvenBlocks<S>>(columns[h][i], columns[h][i + block]);
      }
      HEED_UNROLL for (int i = 0; i < half; ++i) use(h * half + i, columns[h][i]);
    }
    return;
  }
#endif
  typename S::V columns[S::width];
  for_each_row<S::width>(first, stride, [&](int i, const typename S::Scalar* at) HEED_LAMBDA {
    columns[i] = S::load(at);
    if (i % line == 0) ahead.template fetch_line<2>();
  });
  transpose<S>(columns);
  HEED_UNROLL for (int i = 0; i < S::width; ++i) use(i, columns[i]);
}

/// Row `row`, or the last of `count` rows where there are fewer.
template <class T>
HEED_SIMD const T* row_or_last(const T* source, Index row_stride, Index count, Index row) {
  return source + (row < count ? row : count - 1) * row_stride;
}

/// Whether a partial vector of `columns` columns is faster to transpose than to move one by one.
template <class S>
HEED_SIMD bool transposing_pays(Index columns) {
  return 4 * columns >= S::width;
}

HEED_SIMD float widened(std::uint16_t bits) {
  return __builtin_bit_cast(float, std::uint32_t{bits} << 16);
}
template <class T>
HEED_SIMD T widened(T number) {
  return number;
}
/// The first `left` numbers of a vector, with zeros or anything behind them.
template <class S>
HEED_SIMD void copy_first(const typename S::Scalar* from, Index left, typename S::Scalar* to) {
  S::store(to, load_first<S>(from, left));
}
template <class S>
HEED_SIMD void copy_first(const std::uint16_t* from, Index left, std::uint16_t* to) {
  for (Index i = 0; i < left; ++i) to[i] = from[i];
}

/// See Kernels::pack, for one vector of lanes: the rows `source + i · row_stride`, i < count, of T
/// or of bfloat16.
template <class S, class Number = typename S::Scalar>
HEED_KERNEL void pack_lanes(const Number* source, Index row_stride, Index column_stride,
                            Index count, Index columns, typename S::Scalar factor,
                            typename S::Scalar* packed, Index stride) {
  Index column = 0;
  for (; column_stride == 1 && column < columns; column += S::width) {
    const Index left = columns - column;
    const Number* at = source + column;
    Number spill[S::width * S::width];
    if (left < S::width) {
      if (!transposing_pays<S>(left)) break;
      for (Index i = 0; i < S::width; ++i) {
        copy_first<S>(row_or_last(at, row_stride, count, i), left, spill + i * S::width);
      }
      at = spill;
      row_stride = S::width;
    }
    typename S::V rows[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      rows[i] = load_wide<S>(row_or_last(at, row_stride, count, i)) * S::broadcast(factor);
    }
    transpose<S>(rows);
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      if (i < left) S::store(packed + (column + i) * stride, rows[i]);
    }
  }
  for (; column < columns; ++column) {
    for (Index i = 0; i < S::width; ++i) {
      packed[column * stride + i] =
          widened(row_or_last(source, row_stride, count, i)[column * column_stride]) * factor;
    }
  }
}

/// See Kernels::unpack, for one vector of lanes.
template <class S>
HEED_KERNEL void unpack_lanes(const typename S::Scalar* transposed, Index stride, Index count,
                              Index columns, const typename S::Scalar* factors,
                              typename S::Scalar* out, Index row_stride, Index column_stride) {
  using T = typename S::Scalar;
  const auto factor = S::load(factors);
  Index column = 0;
  for (; column_stride == 1 && column < columns; column += S::width) {
    const Index left = columns - column;
    if (left < S::width && !transposing_pays<S>(left)) break;
    typename S::V rows[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      const T* row = row_or_last(transposed + column * stride, stride, left, i);
      rows[i] = S::load(row) * factor + S::broadcast(0);
    }
    transpose<S>(rows);
    const bool whole = count >= S::width && left >= S::width;
    T spill[S::width * S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      S::store(whole ? out + i * row_stride + column : spill + i * S::width, rows[i]);
    }
    for (Index i = 0; !whole && i < count && i < S::width; ++i) {
      const auto row = S::load(spill + i * S::width);
      store_upto<S>(out + i * row_stride + column, row, left);
    }
  }
  for (; column < columns; ++column) {
    for (Index i = 0; i < count && i < S::width; ++i) {
      out[i * row_stride + column * column_stride] =
          transposed[column * stride + i] * factors[i] + T{0};
    }
  }
}
