// SPDX-License-Identifier: MIT
// Dropout of activations. Included by part.inl.

template <class T>
struct DropTable {
  using S = Lanes<T>;
  using Philox = PhiloxLanes<double>;
  static constexpr int most = 4 * Philox::width;  // words of a draw

  HEED_SIMD static void draw(const DropRun<T>& run, std::uint64_t four,
                             std::uint32_t (&words)[most]) {
    using U = typename Philox::U;
    const U at = Philox::ramp(four);
    U c[4] = {at, at >> 32, U{} + run.stream, U{}};
    Philox::mix(c, run.key);
    U pairs[2] = {(c[0] & 0xFFFFFFFFu) | c[1] << 32, (c[2] & 0xFFFFFFFFu) | c[3] << 32};
    Philox::interleave(pairs[0], pairs[1], std::make_integer_sequence<int, Philox::width>());
    static_assert(sizeof(pairs) == sizeof(words));
    __builtin_memcpy(words, pairs, sizeof(words));
  }

  /// Without a branch, which would be taken at random.
  HEED_SIMD static T kept(T value, bool keep) {
    using Bits = std::make_unsigned_t<typename LaneTypes<T>::Int>;
    const auto mask = static_cast<Bits>(Bits{0} - static_cast<Bits>(keep));
    return __builtin_bit_cast(T, static_cast<Bits>(__builtin_bit_cast(Bits, value) & mask));
  }

  HEED_SIMD static void apply(const DropRun<T>& run, const std::uint32_t (&words)[most], T* x) {
#if HEED_SIMD_BYTES != 0
    if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
      typedef std::uint32_t W __attribute__((vector_size(HEED_SIMD_BYTES)));
      for (int i = 0; i < most; i += S::width) {
        W word;
        __builtin_memcpy(&word, words + i, sizeof(word));
        const auto scaled = S::load(x + i) * S::broadcast(run.scale);
        S::store(x + i, (typename S::V)((W)scaled & (W)(word >= (W{} + run.least))));
      }
      return;
    }
#endif
    for (int i = 0; i < most; ++i) x[i] = kept(x[i] * run.scale, words[i] >= run.least);
  }

  HEED_KERNEL static void drop(const DropRun<T>& run, std::uint64_t four, T* x, Index count) {
    std::uint32_t words[most];
    for (; count >= most; count -= most, x += most, four += Philox::width) {
      draw(run, four, words);
      apply(run, words, x);
    }
    if (count == 0) return;
    draw(run, four, words);
    for (Index i = 0; i < count; ++i) x[i] = kept(x[i] * run.scale, words[i] >= run.least);
  }
};
