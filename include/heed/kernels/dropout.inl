// SPDX-License-Identifier: MIT
// Dropout of attention weights. Included by part.inl.

template <class Wide>
struct DropoutTable {
  using S = Lanes<Wide>;
  using Philox = PhiloxLanes<Wide>;
  using U = typename Philox::U;
  static constexpr int width = Philox::width;

  /// One bit per lane, set if its draw is at least `dropped`, both below 2^32.
  HEED_SIMD static std::uint64_t kept(U draws, std::uint64_t dropped) {
    const U below = draws - dropped;  // negative, with its top bit set, if dropped
    constexpr std::uint64_t all = (std::uint64_t{1} << width) - 1;
#if HEED_SIMD_BYTES == 0 || !defined(__x86_64__)
    return below >> 63 ^ all;
#elif HEED_SIMD_BYTES == 64
    typedef long long L __attribute__((vector_size(64)));
    return static_cast<unsigned char>(__builtin_ia32_cvtq2mask512((L)below)) ^ all;
#elif HEED_SIMD_BYTES == 32
    return static_cast<unsigned>(__builtin_ia32_movmskpd256((typename S::V)below)) ^ all;
#else
    return static_cast<unsigned>(__builtin_ia32_movmskpd((typename S::V)below)) ^ all;
#endif
  }

  /// One vector of counters from `lane` on.
  HEED_SIMD static void draw_some(const DropoutLanes& at, Index lane, std::uint64_t (&words)[8]) {
    const U ramp = Philox::ramp(static_cast<std::uint64_t>(lane));
    U c[4] = {Philox::multiply(ramp, U{} + at.group_step) + at.group,
              Philox::multiply(ramp, U{} + at.query_step) + at.query, U{} + at.head,
              U{} + at.batch};
    Philox::mix(c, at.key);
    HEED_UNROLL for (int i = 0; i < 4; ++i) {
      words[2 * i] |= kept(c[i] & 0xFFFF, at.dropped) << lane;
      words[2 * i + 1] |= kept(c[i] >> 16 & 0xFFFF, at.dropped) << lane;
    }
  }

  HEED_KERNEL static void draw(const DropoutLanes& counters, std::uint64_t (&words)[8]) {
    for (auto& word : words) word = 0;
    for (Index lane = 0; lane < counters.lanes; lane += width) draw_some(counters, lane, words);
  }
};

template <class Wide>
DropoutKernel dropout_draw() {
  return DropoutTable<Wide>::draw;
}
