// SPDX-License-Identifier: MIT
// Matrix products of factors rounded to bfloat16, and their rounding. Included by part.inl, after
// gemm_quantized.inl.

/// `Dots`: the set has vdpbf16ps, which adds the products of a pair one after the other, the upper
/// halves first, each rounded like a fused multiply-add. So both ways give the same bits, except
/// that the instruction takes subnormal numbers as 0. Other sets multiply floats: the left-hand
/// rows stay floats, and pairs of b are widened in registers. `Rounds`: it has an instruction for
/// rounding too.
///
/// Functions of factors take a `Number`: float, to be rounded, or std::uint16_t, the bits of
/// numbers that are bfloat16 already.
template <bool Dots, bool Rounds = Dots>
struct Bfloat16Product : PairWords {
  static constexpr auto codes = QuantizedCodes::bfloat16;
  static constexpr Index terms_in_float = Dots ? 2 : 1;  // of rounded rows

#if HEED_SIMD_BYTES == 64
  /// Rows of pairs, each in the place of a float.
  struct DotRows {
    const float* pairs;
    Index stride;

    template <int Rows, int Vectors>
    HEED_SIMD void add(Index row, Index k, const Unsigned (&words)[Vectors],
                       V (&sums)[Rows][Vectors]) const {
      const float* from = pairs + row * stride + k / 2;
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        const Unsigned pair = load<std::uint32_t>(from + r * stride) - Unsigned{};
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          // Assembler, since compilers disagree on the types of the builtin.
          asm("vdpbf16ps %2, %1, %0" : "+v"(sums[r][j]) : "v"(pair), "v"(words[j]));
        }
      }
    }
  };
#else
  struct DotRows {};  // no set of such vectors has the instruction
#endif

  HEED_KERNEL static void piece(const ProductPiece<float>& piece, const float* a, Index a_stride,
                                const std::uint8_t* b) {
    if constexpr (Dots) {
      PairWords::piece(piece, b, DotRows{a, a_stride});
    } else {
      using Rows = WidenedProduct<codes>::FloatRows;
      PairWords::piece(piece, b, Rows{{a, a_stride, 1}, piece.depth});
    }
  }

  /// rounded_to_bfloat16, with zeros in the lower halves.
  HEED_SIMD static Unsigned rounded(V numbers) { return rounded_to_bfloat16(numbers) & 0xffff0000; }
#if HEED_SIMD_BYTES == 64
  typedef std::uint16_t Numbers __attribute__((vector_size(64)));
  /// Two vectors rounded by vcvtne2ps2bf16, one behind the other. It takes subnormal numbers as 0,
  /// as products do, but those next to the least normal number round to that: they become larger.
  HEED_SIMD static Numbers narrowed(V low, V high) {
    Numbers numbers;
    asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(numbers) : "v"(raised(high)), "v"(raised(low)));
    return numbers;
  }
  HEED_SIMD static V raised(V numbers) {
    const auto bits = __builtin_bit_cast(Unsigned, numbers);
    return __builtin_bit_cast(V, (bits & 0x7f800000) == 0 ? bits + 0x8000 : bits);
  }
  template <int... I>
  HEED_SIMD static V alternately(Numbers halves, std::integer_sequence<int, I...>) {
    return (V)__builtin_shufflevector(halves, halves, (I / 2 + I % 2 * S::width)...);
  }
#endif
  /// The two numbers of every lane as a pair.
  template <class Number>
  HEED_SIMD static V pairs_across(V first, V second) {
    if constexpr (sizeof(Number) == 2) {
      return __builtin_bit_cast(
          V, __builtin_bit_cast(Unsigned, first) | __builtin_bit_cast(Unsigned, second) >> 16);
    }
#if HEED_SIMD_BYTES == 64
    if constexpr (Rounds) {
      return alternately(narrowed(second, first), std::make_integer_sequence<int, 2 * S::width>());
    }
#endif
    return __builtin_bit_cast(V, rounded(first) | rounded(second) >> 16);
  }
  /// Neighbors as pairs: those of `numbers`, then those of `next`.
  template <class Number>
  HEED_SIMD static V pairs_along(V numbers, V next) {
#if HEED_SIMD_BYTES == 64
    if constexpr (Rounds && sizeof(Number) == 4) {
      const auto pairs = (Unsigned)narrowed(numbers, next);
      return (V)(pairs << 16 | pairs >> 16);
    }
#endif
    constexpr auto lanes = std::make_integer_sequence<int, S::width>();
    return pairs_across<Number>(every_second<0>(numbers, next, lanes),
                                every_second<1>(numbers, next, lanes));
  }
  template <int First, int... I>
  HEED_SIMD static V every_second(V numbers, V next, std::integer_sequence<int, I...>) {
#if HEED_SIMD_BYTES == 0
    return First == 0 ? numbers : next;
#else
    return __builtin_shufflevector(numbers, next, (First + 2 * I)...);
#endif
  }
  /// At most a vector of the `left` numbers that there are, and zeros; bfloat16 as floats.
  HEED_SIMD static V load_left(const float* from, Index left) {
    return load_upto<S>(from, left > 0 ? left : 0);
  }
  HEED_SIMD static V load_left(const std::uint16_t* from, Index left) {
    if (left >= S::width) return load_wide<S>(from);
    std::uint16_t some[S::width] = {};
    copy_first<S>(from, left, some);
    return load_wide<S>(some);
  }
  /// Numbers that do not lie side by side, copied.
  template <class Number>
  HEED_SIMD static MatrixRef<Number> gathered(MatrixRef<Number> from, Index rows, Index columns,
                                              Number* to, Index stride) {
    for (Index row = 0; row < rows; ++row) {
      for (Index column = 0; column < columns; ++column) {
        to[row * stride + column] = from.data[row * from.row_stride + column * from.column_stride];
      }
    }
    return {to, stride, 1};
  }

  static constexpr Index vector_terms = S::width * terms_in_float;  // of a rounded row

  template <class Number>
  HEED_SIMD static V row_vector(V numbers, V next) {
    if constexpr (Dots) return pairs_along<Number>(numbers, next);
    if constexpr (sizeof(Number) == 2) return numbers;
    return __builtin_bit_cast(V, rounded(numbers));
  }
  template <class Number>
  HEED_SIMD static void round_row(const Number* x, Index depth, float* to) {
    constexpr Index last = vector_terms - S::width;
    Index k = 0;
    for (; k + vector_terms <= depth; k += vector_terms, to += S::width) {
      if constexpr (Dots && sizeof(Number) == 2) {
        const auto pairs = load<Unsigned>(x + k);
        S::store(to, __builtin_bit_cast(V, pairs << 16 | pairs >> 16));
      } else {
        S::store(to, row_vector<Number>(load_wide<S>(x + k), load_wide<S>(x + k + last)));
      }
    }
    if (k == depth) return;
    S::store(to, row_vector<Number>(load_left(x + k, depth - k),
                                    load_left(x + k + last, depth - k - last)));
  }
  /// A vector of terms of each of `rows` rows, one or more: at most as many as there are lanes.
  /// `terms` has a term in each row.
  template <class Number>
  HEED_SIMD static void round_terms(MatrixRef<Number> terms, Index depth, Index rows, float* to,
                                    Index stride) {
    V lanes[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      const Index k = i * terms_in_float;
      const Number* at = terms.data + k * terms.row_stride;
      const V first = load_left(at, k < depth ? rows : 0);
      if constexpr (Dots) {
        lanes[i] =
            pairs_across<Number>(first, load_left(at + terms.row_stride, k + 1 < depth ? rows : 0));
      } else {
        lanes[i] = row_vector<Number>(first, first);
      }
    }
    transpose<S>(lanes);
    HEED_UNROLL for (int row = 0; row < S::width; ++row) {
      if (row < rows) S::store(to + row * stride, lanes[row]);
    }
  }
  template <class Number>
  HEED_SIMD static void round_columns(MatrixRef<Number> a, Index rows, Index depth, float* to,
                                      Index stride) {
    for (Index k = 0; k < depth; k += vector_terms) {
      const Index count = depth - k < vector_terms ? depth - k : vector_terms;
      MatrixRef<Number> terms{a.data + k * a.column_stride, a.column_stride, a.row_stride};
      for (Index i = 0; i < vector_terms; ++i) {  // for the next rows
        __builtin_prefetch(terms.data + i * terms.row_stride + numbers_in_line<Number>, 0, 2);
      }
      Number copies[vector_terms * S::width];
      if (a.row_stride != 1) terms = gathered(terms, count, rows, copies, S::width);
      round_terms(terms, count, rows, to + k / terms_in_float, stride);
    }
  }
  template <class Number>
  HEED_KERNEL static void round_rows(MatrixRef<Number> a, Index rows, Index depth, float* to,
                                     Index stride) {
    for (Index row = 0; row < rows && a.column_stride == 1; ++row) {
      const Number* from = a.data + row * a.row_stride;
      // The processor does not foresee pieces of rows that lie far apart: measured, 10 %.
      for (Index k = 0; k < depth; k += numbers_in_line<Number>) {
        __builtin_prefetch(from + 12 * a.row_stride + k, 0, 2);
      }
      round_row(from, depth, to + row * stride);
    }
    for (Index row = 0; row < rows && a.column_stride != 1; row += S::width) {
      round_columns(a.from(row, 0), rows - row < S::width ? rows - row : S::width, depth,
                    to + row * stride, stride);
    }
  }

  template <class Number>
  HEED_SIMD static void pack_rows(MatrixRef<Number> b, Index depth, Index columns,
                                  std::uint8_t* to) {
    for (Index k = 0; k < depth; k += 2) {
      const Number* at = b.data + k * b.row_stride;
      const Index second = k + 1 < depth ? columns : 0;
      HEED_UNROLL for (Index lane = 0; lane < panel_columns; lane += S::width, to += sizeof(V)) {
        // Of the next panel: near the lines that are read, and early.
        __builtin_prefetch(at + panel_columns + lane, 0, 2);
        __builtin_prefetch(at + b.row_stride + panel_columns + lane, 0, 2);
        store(pairs_across<Number>(load_left(at + lane, columns - lane),
                                   load_left(at + b.row_stride + lane, second - lane)),
              to);
      }
    }
  }
  /// Two vectors of terms of as many columns as there are lanes, of which `columns` exist, or none.
  /// `turned` has a column in each row.
  template <class Number>
  HEED_SIMD static void pack_terms(MatrixRef<Number> turned, Index columns, Index depth,
                                   std::uint8_t* to) {
    V pairs[S::width];
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      const Number* at = turned.data + i * turned.row_stride;
      const Index left = i < columns ? depth : 0;
      pairs[i] =
          pairs_along<Number>(load_left(at, left), load_left(at + S::width, left - S::width));
    }
    transpose<S>(pairs);
    HEED_UNROLL for (int i = 0; i < S::width; ++i) {
      if (2 * i < depth) store(pairs[i], to + i * pair_bytes);
    }
  }
  template <class Number>
  HEED_KERNEL static void pack(MatrixRef<Number> b, Index depth, Index columns, std::uint8_t* to) {
    if (b.column_stride == 1) return pack_rows(b, depth, columns, to);
    constexpr Index terms = 2 * S::width;
    // Columns to prefetch in each step, so that all have come when they are packed.
    const Index share = depth > 0 ? (S::width * terms + depth - 1) / depth : 0;
    const Index more = b.row_stride != 1          ? 0
                       : columns == panel_columns ? panel_columns
                                                  : columns - S::width;
    for (Index lane = 0; lane < panel_columns; lane += S::width) {
      const Index count = columns - lane < S::width ? columns - lane : S::width;
      for (Index k = 0; k < depth; k += terms) {
        if (lane < more) {
          fetch_columns(b.from(0, lane + S::width), k / terms * share, share, depth);
        }
        const Index last = depth - k < terms ? depth - k : terms;
        MatrixRef<Number> turned{b.data + k * b.row_stride + lane * b.column_stride,
                                 b.column_stride, b.row_stride};
        Number copies[terms * S::width];
        if (b.row_stride != 1) turned = gathered(turned, count, last, copies, terms);
        pack_terms(turned, count, last, to + k / 2 * pair_bytes + lane * 4);
      }
    }
  }

  /// Prefetches some of S::width columns that are each contiguous. In the order of memory and
  /// into the second-level cache: what follows in the order of packing, or came into the
  /// first-level cache, hardly took less time than without.
  template <class Number>
  HEED_SIMD static void fetch_columns(MatrixRef<Number> columns, Index first, Index count,
                                      Index depth) {
    const Index end = first + count < S::width ? first + count : S::width;
    for (Index column = first; column < end; ++column) {
      const Number* at = columns.data + column * columns.column_stride;
      for (Index k = 0; k < depth; k += numbers_in_line<Number>) __builtin_prefetch(at + k, 0, 2);
    }
  }

  HEED_KERNEL static void narrow(const float* x, Index count, std::uint16_t* to) {
    Index i = 0;
#if HEED_SIMD_BYTES == 64
    for (; Rounds && i + 2 * S::width <= count; i += 2 * S::width) {
      const Numbers numbers = narrowed(S::load(x + i), S::load(x + i + S::width));
      __builtin_memcpy(to + i, &numbers, sizeof(numbers));
    }
#endif
    for (; i < count; i += S::width) {
      const HalfWords halves = lower_halves(rounded_to_bfloat16(load_left(x + i, count - i)) >> 16);
      const auto left = static_cast<std::size_t>(count - i) * sizeof(std::uint16_t);
      __builtin_memcpy(to + i, &halves, left < sizeof(halves) ? left : sizeof(halves));
    }
  }

 private:
  static constexpr Index pair_bytes = 4 * panel_columns;

  HEED_SIMD static void store(V pairs, std::uint8_t* to) {
    __builtin_memcpy(to, &pairs, sizeof(pairs));
  }
};

template <class T, bool Dots = false>
const Bfloat16ProductKernels<T>& bfloat16_product_table() {
  using K = Bfloat16Product<Dots>;
  static constexpr Bfloat16ProductKernels<T> entries{product_rows,
                                                     K::terms_in_float,
                                                     K::template round_rows<T>,
                                                     K::template round_rows<std::uint16_t>,
                                                     K::template pack<T>,
                                                     K::template pack<std::uint16_t>,
                                                     K::narrow,
                                                     nullptr,
                                                     nullptr,
                                                     K::piece};
  return entries;
}
