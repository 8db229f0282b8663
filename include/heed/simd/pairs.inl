// SPDX-License-Identifier: MIT
// Vectors of bfloat16 pairs and the tile product on them, a·b + a'·b' + c in one instruction.
// Included by part.inl, for sets that have it.

/// Two bfloat16 to a lane of T = float.
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
  HEED_SIMD static void store(std::uint16_t* at, V pairs) {
    *reinterpret_cast<Unaligned*>(at) = pairs;
  }
  HEED_SIMD static V spread(const std::uint16_t* at) {
    return *reinterpret_cast<const Word*>(at) - V{};
  }
  /// The elements of two rows in turns.
  HEED_SIMD static void store_zipped(V low, V high, std::uint16_t* to) {
    zip(low, high, to, std::make_integer_sequence<int, step>());
  }
  /// sums + a·b: assembler, since compilers disagree on the types of the builtin.
  HEED_SIMD static typename S::V add_products(V a, V b, typename S::V sums) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
    return sums;
  }

 private:
  template <int... I>
  HEED_SIMD static void zip(V low, V high, std::uint16_t* to, std::integer_sequence<int, I...>) {
    const auto a = (Halves)low, b = (Halves)high;
    store(to, (V)__builtin_shufflevector(a, b, (I / 2 + I % 2 * step)...));
    store(to + step, (V)__builtin_shufflevector(a, b, (width + I / 2 + I % 2 * step)...));
  }
};

/// `multiply` of tile.inl in pairs: sums[r][lane] += Σ_k a(r, k) · b[k][lane] with k over pairs;
/// strides count bfloat16.
template <class P, int Rows, int Vectors>
HEED_SIMD void multiply_pairs(const std::uint16_t* a, Index a_row, Index a_step,
                              const std::uint16_t* b, Index b_stride, Index depth,
                              typename P::S::V (&sums)[Rows][Vectors]) {
  for (Index k = 0; k < depth; ++k) {
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

/// A probability as bfloat16, in a float: 2^(x + weight_offset) rounded to 8 bits, for x as
/// `weight_exponent` makes it. Exactly 0 from x <= -127 on, 1 for the maximum, NaN for NaN.
/// 2^f is c0 · (1 + …) with c0 = 181/128, so that the sum that rounds to a multiple of 1/128 has
/// an exact term; the fit's relative error is 1.0e-4, a fortieth of the rounding's.
template <class S>
HEED_SIMD typename S::V narrow_weight(typename S::V x) {
  constexpr float shifter = 0x1.8p23f + 127, unit = 0x1.8p16f;
  // Past the lazy limit, where the maximum moves; and a block's sum is far from overflow.
  x = S::min(S::broadcast(48), S::max(S::broadcast(-127), x));
  const auto shifted = x + S::broadcast(shifter);
  const auto f = x - (shifted - S::broadcast(shifter));
  auto p = S::fma(S::broadcast(0x1.3e9c9ap-4f), f, S::broadcast(0x1.5eb8b2p-2f));
  p = S::fma(p, f, S::broadcast(0x1.f5efd4p-1f));
  p = S::fma(p, f, S::broadcast(unit + 181.0f / 128)) - S::broadcast(unit);
  return p * S::shift_to_exponent(shifted);
}
/// log2(181 / 128).
inline constexpr float weight_offset = 0x1.ffd79ap-2f;

/// Bits of two probabilities as a pair.
template <class P>
HEED_SIMD typename P::V pair_of(typename P::S::V low, typename P::S::V high) {
  typedef std::uint32_t U __attribute__((vector_size(HEED_SIMD_BYTES)));
  return (typename P::V)((U)low >> 16 | (U)high);
}
