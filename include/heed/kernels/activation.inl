// SPDX-License-Identifier: MIT
// Activation functions between linear layers, and their slopes. Included by part.inl.

/// e^x within about two units in the last place: compensates the rounding error of x · log2(e).
template <class S>
HEED_SIMD typename S::V exp(typename S::V x) {
  using Float = typename S::Scalar;
  constexpr double log2_of_e = 1.4426950408889634074;
  constexpr auto high = static_cast<Float>(log2_of_e);
  constexpr auto low = sizeof(Float) == 4
                           ? static_cast<Float>(log2_of_e - static_cast<double>(high))
                           : static_cast<Float>(2.0355273740931033e-17);
  constexpr Float limit = sizeof(Float) == 4 ? 200 : 2000;  // keeps infinities out of differences
  x = S::min(S::broadcast(limit), S::max(S::broadcast(-limit), x));
  const auto scaled = x * S::broadcast(high);
  auto rest = S::fma(x, S::broadcast(high), S::broadcast(0) - scaled);
  rest = S::fma(x, S::broadcast(low), rest);
  const auto ln_2 = S::broadcast(static_cast<Float>(0.69314718055994530942));
  return exp2<S>(scaled) * S::fma(rest, ln_2, S::broadcast(1));
}

/// 1 / (1 + e^-x)
template <class S>
HEED_SIMD typename S::V sigmoid(typename S::V x) {
  return S::broadcast(1) / (S::broadcast(1) + exp<S>(S::broadcast(0) - x));
}

/// G(y) = 2 Φ(-t) e^(t²/2) (t + 4) / 4 with y = (t - 4) / (t + 4): smooth for all t >= 0, and so
/// close to a polynomial; interpolated at Chebyshev nodes to 1.3e-8 (float) and 4e-18 (double).
template <class Float>
struct TailCoefficients;
template <>
struct TailCoefficients<float> {
  static constexpr int count = 10;
  static constexpr float values[count] = {
      0.377642569f,    -0.303948297f,   0.193568342f,    -0.0932616534f, 0.0302030928f,
      -0.00376270121f, -0.00176048641f, 0.000783440844f, 9.44982597e-5f, -6.27791928e-5f};
};
template <>
struct TailCoefficients<double> {
  static constexpr int count = 24;
  static constexpr double values[count] = {
      0.377642565207875747,     -0.303948320985946053,   0.193568700371107258,
      -0.0932609289798287283,   0.0301982874454688461,   -0.00377009448335969069,
      -0.00173984618370645698,  0.000815409228734873257, 0.0000666721562796069434,
      -0.000115547467065320319, -9.54129486395478741e-7, 0.0000175723403353778097,
      3.58333069615522908e-7,   -2.96007808073725401e-6, -3.14844841904649872e-7,
      5.10760250645453554e-7,   1.35890497417250011e-7,  -7.74635661943663456e-8,
      -4.26849567667130389e-8,  6.63054616500995021e-9,  9.79386372222308335e-9,
      9.58847632675076092e-10,  -1.25568646434708305e-9, -3.61383746017522472e-10};
};

/// The normal distribution at x, and its derivative there in `density`.
template <class S>
HEED_SIMD typename S::V normal_distribution(typename S::V x, typename S::V& density) {
  using Float = typename S::Scalar;
  using C = TailCoefficients<Float>;
  const auto zero = S::broadcast(0);
  const auto positive = S::greater(x, zero);
  const auto t = S::min(S::broadcast(64), S::select(positive, x, zero - x));
  const auto square = t * t;
  const auto rest = S::fma(t, t, zero - square);  // the rounding error of the square
  const auto half = S::broadcast(static_cast<Float>(0.5));
  const auto bell = exp<S>(zero - half * square) * S::fma(rest, zero - half, S::broadcast(1));
  density = bell * S::broadcast(static_cast<Float>(0.39894228040143267794));
  const auto scale = S::broadcast(4) / (t + S::broadcast(4));
  const auto y = S::fma(scale, S::broadcast(-2), S::broadcast(1));
  auto tail = S::broadcast(C::values[C::count - 1]);
  HEED_UNROLL for (int i = C::count - 2; i >= 0; --i) {
    tail = S::fma(tail, y, S::broadcast(C::values[i]));
  }
  tail = half * bell * tail * scale;
  return S::select(positive, S::broadcast(1) - tail, tail);
}

/// f(x), and f'(x) in `slope` unless null; computes their common parts once.
template <ActivationKind f, class S>
HEED_SIMD typename S::V activation(typename S::V x, typename S::V* slope = nullptr) {
  using Float = typename S::Scalar;
  const auto one = S::broadcast(1);
  if constexpr (f == ActivationKind::relu) {
    const auto zero = S::broadcast(0);
    if (slope) *slope = S::select(S::greater(x, zero), one, zero);
    return S::max(zero, x);
  } else if constexpr (f == ActivationKind::silu) {
    const auto s = sigmoid<S>(x);
    if (slope) *slope = S::fma(x * s, one - s, s);
    return x * s;
  } else if constexpr (f == ActivationKind::gelu_tanh) {
    // (1 + tanh(u)) / 2 is sigmoid(2u), which has no cancellation.
    const auto c = S::broadcast(static_cast<Float>(1.5957691216057307117));  // 2 √(2/π)
    const auto cubic = S::broadcast(static_cast<Float>(0.044715));
    const auto s = sigmoid<S>(c * S::fma(cubic * x * x, x, x));
    if (slope) {
      // Its factor below is 0 long before the square would overflow.
      const auto near = S::max(S::broadcast(-64), S::min(S::broadcast(64), x));
      const auto steepness = c * S::fma(S::broadcast(3) * cubic * near, near, one);
      *slope = S::fma(x * s * (one - s), steepness, s);
    }
    return x * s;
  } else {
    static_assert(f == ActivationKind::gelu);
    typename S::V density;
    const auto share = normal_distribution<S>(x, density);
    if (slope) *slope = S::fma(x, density, share);
    return x * share;
  }
}

// Dropout of activations.

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

  /// Branch-free: a branch would be taken at random.
  HEED_SIMD static T kept(T value, bool keep) {
    using Bits = std::make_unsigned_t<typename LaneTypes<T>::Int>;
    const auto mask = static_cast<Bits>(Bits{0} - static_cast<Bits>(keep));
    return __builtin_bit_cast(T, static_cast<Bits>(__builtin_bit_cast(Bits, value) & mask));
  }

  HEED_SIMD static void apply(const DropRun<T>& run, const std::uint32_t (&words)[most], T* x) {
#if HEED_SIMD_BYTES != 0
    if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
      for (int i = 0; i < most; i += S::width) {
        WholeWords word;
        __builtin_memcpy(&word, words + i, sizeof(word));
        const auto scaled = S::load(x + i) * S::broadcast(run.scale);
        S::store(x + i, (typename S::V)((WholeWords)scaled &
                                        (WholeWords)(word >= (WholeWords{} + run.least))));
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
