// SPDX-License-Identifier: MIT
// Matrix products of rows rounded to bfloat16 with bfloat16 weights. Included by part.inl, after
// gemm.inl.

/// `Dots`: the set has vdpbf16ps, which adds the products of a pair one after the other, the upper
/// halves first, each rounded like a fused multiply-add. So both ways give the same bits, except
/// that the instruction takes subnormal numbers as 0.
template <bool Dots>
struct Bfloat16Product : PairWords {
  static constexpr auto codes = QuantizedCodes::bfloat16;

  /// sums + a·b + a'·b' for the pairs in the lanes.
  HEED_SIMD static V add_products(Unsigned a, Unsigned b, V sums) {
#if HEED_SIMD_BYTES == 64
    // Assembler, since compilers disagree on the types of the builtin.
    asm("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
    return sums;
#else
    return S::fma(second<codes>(a), second<codes>(b),
                  S::fma(first<codes>(a), first<codes>(b), sums));
#endif
  }

  struct PairRows {
    const std::uint32_t* pairs;
    Index stride;

    template <int Rows, int Vectors>
    HEED_SIMD void add(Index row, Index k, const Unsigned (&words)[Vectors],
                       V (&sums)[Rows][Vectors]) const {
      const std::uint32_t* from = pairs + row * stride + k / 2;
      if constexpr (Dots) {
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          const Unsigned pair = from[r * stride] - Unsigned{};
          HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
            sums[r][j] = add_products(pair, words[j], sums[r][j]);
          }
        }
      } else {
        V weights[Vectors];
        HEED_UNROLL for (int half = 0; half < 2; ++half) {
          HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
            weights[j] = half == 0 ? first<codes>(words[j]) : second<codes>(words[j]);
          }
          HEED_UNROLL for (int r = 0; r < Rows; ++r) {
            const std::uint32_t pair = from[r * stride];
            const V value =
                S::broadcast(__builtin_bit_cast(float, half == 0 ? pair & 0xffff0000 : pair << 16));
            HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
              sums[r][j] = S::fma(value, weights[j], sums[r][j]);
            }
          }
        }
      }
    }
  };

  HEED_KERNEL static void tile(const ProductTile<float>& tile, const std::uint32_t* a,
                               Index a_stride, const QuantizedPanel& panel) {
    PairWords::tile(tile, panel.blocks, PairRows{a, a_stride});
  }

  /// A number rounded to bfloat16 in the upper half of its bits; see core/bfloat16.hpp.
  HEED_SIMD static std::uint32_t rounded(float value) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    const bool nan = (bits & 0x7fffffff) > 0x7f800000;
    return (nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  }
#if HEED_SIMD_BYTES != 0
  HEED_SIMD static Unsigned rounded(Unsigned bits) {
    const auto nan = (bits & 0x7fffffff) > 0x7f800000;
    return nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  }
#endif
  HEED_KERNEL static void round_row(const float* x, Index step, Index depth, std::uint32_t* pairs) {
    Index k = 0;
#if HEED_SIMD_BYTES != 0
    typedef std::uint64_t Doubles __attribute__((vector_size(HEED_SIMD_BYTES)));
    typedef std::uint32_t Half __attribute__((vector_size(HEED_SIMD_BYTES / 2)));
    for (; step == 1 && k + S::width <= depth; k += S::width) {
      const auto two = (Doubles)rounded(load<Unsigned>(x + k));  // the second above the first
      const Half words = __builtin_convertvector((two & 0xffff0000) | two >> 48, Half);
      __builtin_memcpy(pairs + k / 2, &words, sizeof(words));
    }
#endif
    for (; k < depth; k += 2) {
      pairs[k / 2] = rounded(x[k * step]);
      if (k + 1 < depth) pairs[k / 2] |= rounded(x[(k + 1) * step]) >> 16;
    }
  }
};

/// The set's product of rows rounded to bfloat16 behind pointers.
template <class T, bool Dots = false>
const Bfloat16ProductKernels<T>& bfloat16_product_table() {
  using K = Bfloat16Product<Dots>;
  static constexpr Bfloat16ProductKernels<T> entries{product_rows, K::round_row, K::tile};
  return entries;
}
