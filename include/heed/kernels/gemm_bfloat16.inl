// SPDX-License-Identifier: MIT
// Matrix products of factors rounded to bfloat16, and their rounding. Included by part.inl, after
// gemm.inl.

/// `Dots`: the set has vdpbf16ps, which adds the products of a pair one after the other, the upper
/// halves first, each rounded like a fused multiply-add. So both ways give the same bits, except
/// that the instruction takes subnormal numbers as 0. Other sets multiply floats: the left-hand
/// rows stay floats, and pairs of b are widened in registers.
template <bool Dots>
struct Bfloat16Product : PairWords {
  static constexpr auto codes = QuantizedCodes::bfloat16;
  static constexpr Index terms_in_float = Dots ? 2 : 1;  // of rounded rows

#if HEED_SIMD_BYTES == 64
  /// Rows of pairs, each in the place of a float.
  struct PairRows {
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
  struct PairRows {};  // no set of such vectors has the instruction
#endif

  HEED_KERNEL static void tile(const ProductTile<float>& tile, const float* a, Index a_stride,
                               const std::uint8_t* b) {
    if constexpr (Dots) {
      PairWords::tile(tile, b, PairRows{a, a_stride});
    } else {
      using Rows = PairProduct<codes>::FloatRows;
      PairWords::tile(tile, b, Rows{{a, a_stride, 1}, tile.depth});
    }
  }

  /// Numbers rounded to bfloat16 in the upper halves of their bits; see core/bfloat16.hpp.
  template <class Bits>
  HEED_SIMD static Bits rounded(Bits bits) {
    const auto nan = (bits & 0x7fffffff) > 0x7f800000;
    return (nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  }
  HEED_SIMD static void round_row(const float* x, Index depth, float* to) {
    Index k = 0;
#if HEED_SIMD_BYTES != 0
    typedef std::uint64_t Doubles __attribute__((vector_size(HEED_SIMD_BYTES)));
    typedef std::uint32_t Half __attribute__((vector_size(HEED_SIMD_BYTES / 2)));
    for (; k + S::width <= depth; k += S::width) {
      const auto numbers = rounded(load<Unsigned>(x + k));
      if constexpr (Dots) {
        const auto two = (Doubles)numbers;  // the second above the first
        const Half pairs = __builtin_convertvector(two | two >> 48, Half);
        __builtin_memcpy(to + k / 2, &pairs, sizeof(pairs));
      } else {
        __builtin_memcpy(to + k, &numbers, sizeof(numbers));
      }
    }
#endif
    for (; k < depth; k += terms_in_float) {
      auto number = rounded(load<std::uint32_t>(x + k));
      if (Dots && k + 1 < depth) number |= rounded(load<std::uint32_t>(x + k + 1)) >> 16;
      __builtin_memcpy(to + k / terms_in_float, &number, sizeof(number));
    }
  }
  HEED_KERNEL static void round_rows(MatrixRef<float> a, Index rows, Index depth, float* to,
                                     Index stride) {
    if (a.column_stride == 1) {
      for (Index row = 0; row < rows; ++row) {
        const float* from = a.data + row * a.row_stride;
        // The processor does not foresee pieces of rows that lie far apart: measured, 10 %.
        for (Index k = 0; k < depth; k += 16) __builtin_prefetch(from + 4 * a.row_stride + k);
        round_row(from, depth, to + row * stride);
      }
      return;
    }
    constexpr Index some_rows = 16, terms = 64;
    float some[some_rows * terms];  // of them, row by row
    for (Index row = 0; row < rows; row += some_rows, to += some_rows * stride) {
      const Index count = rows - row < some_rows ? rows - row : some_rows;
      for (Index k = 0; k < depth; k += terms) {
        const Index last = depth - k < terms ? depth - k : terms;
        const float* from = a.data + row * a.row_stride + k * a.column_stride;
        for (Index term = 0; term < last; term += S::width) {
          pack_lanes<S>(from + term * a.column_stride, a.column_stride, a.row_stride, last - term,
                        count, 1, some + term, terms);
        }
        for (Index r = 0; r < count; ++r) {
          round_row(some + r * terms, last, to + r * stride + k / terms_in_float);
        }
      }
    }
  }

  HEED_KERNEL static void pack(MatrixRef<float> b, Index depth, Index columns, std::uint8_t* to) {
    constexpr Index terms = 32;
    float some[terms * panel_columns] = {};
    for (Index k = 0; k < depth; k += terms) {
      const Index last = depth - k < terms ? depth - k : terms;
      MatrixRef<float> from{b.data + k * b.row_stride, b.row_stride, b.column_stride};
      if (b.column_stride != 1 || columns < panel_columns) {
        ProductTable<float>::pack(from, last, columns, some);
        from = {some, panel_columns, 1};
      }
      for (Index term = 0; term < last; term += 2, to += 4 * panel_columns) {
        const float* at = from.data + term * from.row_stride;
        for (Index lane = 0; lane < panel_columns; lane += S::width) {
          Unsigned words = rounded(load<Unsigned>(at + lane));
          if (term + 1 < last) words |= rounded(load<Unsigned>(at + from.row_stride + lane)) >> 16;
          __builtin_memcpy(to + 4 * lane, &words, sizeof(words));
        }
      }
    }
  }
};

/// The set's products of factors rounded to bfloat16 behind pointers.
template <class T, bool Dots = false>
const Bfloat16ProductKernels<T>& bfloat16_product_table() {
  using K = Bfloat16Product<Dots>;
  static constexpr Bfloat16ProductKernels<T> entries{product_rows, K::terms_in_float, K::round_rows,
                                                     K::pack, K::tile};
  return entries;
}
