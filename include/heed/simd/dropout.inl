// SPDX-License-Identifier: MIT
// Philox (core/philox.hpp), a counter a lane. Included by part.inl.

template <class Wide>
struct DropoutTable {
  using S = Lanes<Wide>;
#if HEED_SIMD_BYTES != 0 && defined(__x86_64__)
  static constexpr int width = S::width;
  typedef std::uint64_t U __attribute__((vector_size(HEED_SIMD_BYTES)));

  /// Products of the lower halves of the lanes: the compilers do not see them in a · b.
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
  /// A bit for every lane whose highest bit is set.
  HEED_SIMD static std::uint64_t high_bits(U value) {
#if HEED_SIMD_BYTES == 64
    typedef long long L __attribute__((vector_size(64)));
    return static_cast<unsigned char>(__builtin_ia32_cvtq2mask512((L)value));
#elif HEED_SIMD_BYTES == 32
    return static_cast<unsigned>(__builtin_ia32_movmskpd256((typename S::V)value));
#else
    return static_cast<unsigned>(__builtin_ia32_movmskpd((typename S::V)value));
#endif
  }

  /// A bit for every lane whose draw is at least `dropped`.
  HEED_SIMD static std::uint64_t kept(U draws, std::uint64_t dropped) {
    return high_bits(draws - dropped) ^ ((std::uint64_t{1} << width) - 1);
  }

  /// One vector of counters from `lane` on. Only the lower halves of the lanes count.
  HEED_SIMD static void draw_some(const DropoutLanes& at, Index lane, std::uint64_t (&words)[8]) {
    U ramp = {};
    for (int i = 0; i < width; ++i) ramp[i] = static_cast<std::uint64_t>(lane + i);
    U c[4] = {multiply(ramp, U{} + at.group_step) + at.group,
              multiply(ramp, U{} + at.query_step) + at.query, U{} + at.head, U{} + at.batch};
    std::uint32_t key[2] = {at.key[0], at.key[1]};
    for (int round = 0; round < 10; ++round) {
      const U a = multiply(c[0], U{} + 0xD2511F53), b = multiply(c[2], U{} + 0xCD9E8D57);
      c[0] = b >> 32 ^ c[1] ^ (U{} + key[0]);
      c[1] = b;
      c[2] = a >> 32 ^ c[3] ^ (U{} + key[1]);
      c[3] = a;
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    HEED_UNROLL for (int i = 0; i < 4; ++i) {
      words[2 * i] |= kept(c[i] & 0xFFFF, at.dropped) << lane;
      words[2 * i + 1] |= kept(c[i] >> 16 & 0xFFFF, at.dropped) << lane;
    }
  }

#else
  static constexpr int width = 1;

  HEED_SIMD static void draw_some(const DropoutLanes& at, Index lane, std::uint64_t (&words)[8]) {
    const auto i = static_cast<std::uint32_t>(lane);
    std::uint32_t c[4] = {at.group + i * at.group_step, at.query + i * at.query_step, at.head,
                          at.batch};
    std::uint32_t key[2] = {at.key[0], at.key[1]};
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
      c[0] = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0];
      c[1] = static_cast<std::uint32_t>(b);
      c[2] = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1];
      c[3] = static_cast<std::uint32_t>(a);
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    for (int draw = 0; draw < 8; ++draw) {
      const std::uint32_t value = c[draw / 2] >> (draw % 2 * 16) & 0xFFFF;
      words[draw] |= std::uint64_t{value >= at.dropped} << lane;
    }
  }

#endif

  HEED_KERNEL static void draw(const DropoutLanes& counters, std::uint64_t (&words)[8]) {
    for (auto& word : words) word = 0;
    for (Index lane = 0; lane < counters.lanes; lane += width) draw_some(counters, lane, words);
  }
};

template <class Wide>
const DropoutKernels<Wide>& dropout_table() {
  static constexpr DropoutKernels<Wide> entries{DropoutTable<Wide>::draw};
  return entries;
}
