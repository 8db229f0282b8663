// SPDX-License-Identifier: MIT
// Philox (core/philox.hpp), one counter per lane. Included by part.inl.

/// Wide: the type whose vectors have the lanes of 64-bit products.
template <class Wide>
struct PhiloxLanes {
#if HEED_SIMD_BYTES != 0 && defined(__x86_64__)
  static constexpr int width = Lanes<Wide>::width;
  typedef std::uint64_t U __attribute__((vector_size(HEED_SIMD_BYTES)));

  /// Products of the lower halves of the lanes; compilers do not recognize them in a · b.
  HEED_SIMD static U multiply(U a, U b) {
#if HEED_SIMD_BYTES == 16
    asm("pmuludq %1, %0" : "+x"(a) : "x"(b));
    return a;
#else
    U product;
    asm("vpmuludq %2, %1, %0" : "=v"(product) : "v"(a), "v"(b));
    return product;
#endif
  }
  /// 0, 1, 2, … from `first` on.
  HEED_SIMD static U ramp(std::uint64_t first) {
    U lanes = {};
    for (int i = 0; i < width; ++i) lanes[i] = first + static_cast<std::uint64_t>(i);
    return lanes;
  }
  /// Interleaves lanes, a0 b0 a1 b1 …, in two vectors.
  template <int... Lane>
  HEED_SIMD static void interleave(U& a, U& b, std::integer_sequence<int, Lane...>) {
    const U low = __builtin_shufflevector(a, b, ((Lane & 1) * width + Lane / 2)...);
    b = __builtin_shufflevector(a, b, ((Lane & 1) * width + (Lane + width) / 2)...);
    a = low;
  }
#else
  static constexpr int width = 1;
  using U = std::uint64_t;

  HEED_SIMD static U multiply(U a, U b) { return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu); }
  HEED_SIMD static U ramp(std::uint64_t first) { return first; }
  template <int... Lane>
  HEED_SIMD static void interleave(U&, U&, std::integer_sequence<int, Lane...>) {}
#endif

  /// Turns counters into random bits, in the lower halves of the lanes; the upper halves are
  /// ignored.
  HEED_SIMD static void mix(U (&c)[4], const std::uint32_t (&start)[2]) {
    std::uint32_t key[2] = {start[0], start[1]};
    for (int round = 0; round < 10; ++round) {
      const U a = multiply(c[0], U{} + 0xD2511F53), b = multiply(c[2], U{} + 0xCD9E8D57);
      c[0] = b >> 32 ^ c[1] ^ (U{} + key[0]);
      c[1] = b;
      c[2] = a >> 32 ^ c[3] ^ (U{} + key[1]);
      c[3] = a;
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
  }
};
