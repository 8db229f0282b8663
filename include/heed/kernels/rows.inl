// SPDX-License-Identifier: MIT
// Activations with their slopes, functions of layers, losses and optimizers on rows, and norms.
// Included by part.inl, after gemm.inl.

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

/// Calls run(i, left) for each vector of a row; `left` numbers are there, and for all vectors but
/// the last one the compiler knows that they are enough.
template <class S, class Run>
HEED_SIMD void for_each_vector(Index count, const Run& run) {
  Index i = 0;
  for (; i + S::width <= count; i += S::width) run(i, Index{S::width});
  if (i < count) run(i, count - i);
}

template <class T>
struct RowTable {
  using S = Lanes<T>;
  using V = typename S::V;

  /// A vector of a row, at its end with zeros.
  HEED_SIMD static V load_some(const T* from, Index count) {
    return count >= S::width ? S::load(from) : load_first<S>(from, count);
  }

  HEED_KERNEL static void add(const T* x, T* to, Index count) {
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      store_upto<S>(to + i, load_some(to + i, left) + load_some(x + i, left), left);
    });
  }
  HEED_KERNEL static void multiply(const T* a, const T* b, T* out, Index count) {
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      store_upto<S>(out + i, load_some(a + i, left) * load_some(b + i, left), left);
    });
  }
  HEED_KERNEL static void shift_scale(const T* x, T shift, T factor, T* out, Index count) {
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      const V shifted = load_some(x + i, left) - S::broadcast(shift);
      store_upto<S>(out + i, shifted * S::broadcast(factor), left);
    });
  }

  HEED_KERNEL static void rotate(const T* cosines, const T* sines, T* a, T* b, Index count) {
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      const V cosine = load_some(cosines + i, left), sine = load_some(sines + i, left);
      const V real = load_some(a + i, left), imaginary = load_some(b + i, left);
      store_upto<S>(a + i, real * cosine - imaginary * sine, left);
      store_upto<S>(b + i, imaginary * cosine + real * sine, left);
    });
  }

  HEED_KERNEL static void rotate_neighbors(const T* cosines, const T* sines, T* x, Index count) {
#if HEED_SIMD_BYTES == 0
    for (Index i = 0; i < count; i += 2) {
      const T first = x[i];
      x[i] = first * cosines[i] + x[i + 1] * sines[i];
      x[i + 1] = x[i + 1] * cosines[i + 1] + first * sines[i + 1];
    }
#else
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      const V row = load_some(x + i, left);
      const V others = neighbors(row, std::make_integer_sequence<int, S::width>());
      store_upto<S>(x + i, row * load_some(cosines + i, left) + others * load_some(sines + i, left),
                    left);
    });
#endif
  }
#if HEED_SIMD_BYTES != 0
  template <int... I>
  HEED_SIMD static V neighbors(V row, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(row, row, (I ^ 1)...);
  }
#endif

  /// Of whole vectors: code for the last one of a row besides would take long to compile.
  template <ActivationKind f>
  HEED_SIMD static void activate_as(const T* x, T* out, T* slopes, Index count) {
    for (Index i = 0; slopes == nullptr && i < count; i += S::width) {
      S::store(out + i, activation<f, S>(S::load(x + i)));
    }
    for (Index i = 0; slopes != nullptr && i < count; i += S::width) {
      V slope;
      S::store(out + i, activation<f, S>(S::load(x + i), &slope));
      S::store(slopes + i, slope);
    }
  }
  HEED_KERNEL static void activate_vectors(ActivationKind f, const T* x, T* out, T* slopes,
                                           Index count) {
    switch (f) {
      case ActivationKind::relu:
        return activate_as<ActivationKind::relu>(x, out, slopes, count);
      case ActivationKind::gelu:
        return activate_as<ActivationKind::gelu>(x, out, slopes, count);
      case ActivationKind::gelu_tanh:
        return activate_as<ActivationKind::gelu_tanh>(x, out, slopes, count);
      case ActivationKind::silu:
        return activate_as<ActivationKind::silu>(x, out, slopes, count);
    }
  }
  HEED_KERNEL static void activate(ActivationKind f, const T* x, T* out, T* slopes, Index count) {
    const Index whole = count / S::width * S::width, left = count - whole;
    activate_vectors(f, x, out, slopes, whole);
    if (left == 0) return;
    T last[S::width], slope[S::width];
    S::store(last, load_some(x + whole, left));
    activate_vectors(f, last, last, slopes ? slope : nullptr, S::width);
    store_upto<S>(out + whole, S::load(last), left);
    if (slopes) store_upto<S>(slopes + whole, S::load(slope), left);
  }
};

template <class T>
const RowKernels<T>& row_table() {
  using K = RowTable<T>;
  static constexpr RowKernels<T> entries{
      K::add,      K::multiply,       K::shift_scale, K::rotate, K::rotate_neighbors,
      K::activate, DropTable<T>::drop};
  return entries;
}

// Functions of losses and optimizers on arrays of numbers.

/// √x, correctly rounded.
template <class S, class Float = typename S::Scalar>
HEED_SIMD typename S::V square_root(typename S::V x) {
#if HEED_SIMD_BYTES == 0
  if constexpr (sizeof(Float) == 4) return __builtin_sqrtf(x);
  return static_cast<Float>(__builtin_sqrt(x));
#elif HEED_CLANG_HAS(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(x);
#elif HEED_SIMD_BYTES == 64 && defined(__clang__)
  HEED_RETURN_X86(sqrt, 512, x, 4);
#elif HEED_SIMD_BYTES == 64
  HEED_RETURN_X86(sqrt, 512_mask, x, x, S::all, 4);
#elif HEED_SIMD_BYTES == 32
  HEED_RETURN_X86(sqrt, 256, x);
#elif defined(__aarch64__)
  if constexpr (sizeof(Float) == 4)
    return (typename S::V)vsqrtq_f32((float32x4_t)x);
  else
    return (typename S::V)vsqrtq_f64((float64x2_t)x);
#else
  HEED_RETURN_X86(sqrt, , x);
#endif
}

template <class T>
struct TrainingTable {
  using S = Lanes<T>;
  using V = typename S::V;
  using Rows = RowTable<T>;

  /// The sum in double of 16 running totals, so that additions overlap and fill vectors.
  template <bool squared>
  HEED_SIMD static double double_sum(const T* x, Index count) {
    using D = Lanes<double>;
    constexpr int ways = 16, width = D::width;
    typename D::V sums[ways / width] = {};
    Index i = 0;
    for (; i + ways <= count; i += ways) {
      HEED_UNROLL for (int way = 0; way < ways / width; ++way) {
        const auto numbers = load_in_double(x + i + way * width);
        sums[way] += squared ? numbers * numbers : numbers;
      }
    }
    double totals[ways];
    HEED_UNROLL for (int way = 0; way < ways / width; ++way) {
      D::store(totals + way * width, sums[way]);
    }
    for (int way = 0; i < count; ++i, ++way) {
      const auto value = static_cast<double>(x[i]);
      totals[way] += squared ? value * value : value;
    }
    for (int half = ways / 2; half > 0; half /= 2) {
      for (int way = 0; way < half; ++way) totals[way] += totals[way + half];
    }
    return totals[0];
  }
  HEED_KERNEL static double sum_of_squares(const T* x, Index count) {
    return double_sum<true>(x, count);
  }
  HEED_KERNEL static double sum(const T* x, Index count) { return double_sum<false>(x, count); }

  HEED_KERNEL static T maximum(const T* x, Index count) {
    const T lowest = -std::numeric_limits<T>::infinity();
    V most = S::broadcast(lowest);
    Index i = 0;
    // The largest so far is the second operand, where a NaN would stay, so no NaN can enter it.
    for (; i + S::width <= count; i += S::width) most = S::max(S::load(x + i), most);
    T spill[S::width];
    S::store(spill, most);
    T result = lowest;
    for (const T lane : spill) result = lane > result ? lane : result;
    for (; i < count; ++i) result = x[i] > result ? x[i] : result;
    return result;
  }

  HEED_KERNEL static void exponentials(const T* x, T shift, T* out, Index count) {
    const auto down = S::broadcast(shift);
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      store_upto<S>(out + i, exp<S>(Rows::load_some(x + i, left) - down), left);
    });
  }

  HEED_KERNEL static void adam(const AdamUpdate<T>& update, T* weights, const T* gradient, T* first,
                               T* second, Index count) {
    if (update.keep1 > T{0.5})
      return adam_steps<true>(update, weights, gradient, first, second, count);
    adam_steps<false>(update, weights, gradient, first, second, count);
  }
  /// As torch.lerp, the new mean begins at what it is nearer to: with `forgets`, β1 < 0.5, at the
  /// gradient, so that no rounding error of a large old mean stays in a small new one.
  template <bool forgets>
  HEED_SIMD static void adam_steps(const AdamUpdate<T>& update, T* weights, const T* gradient,
                                   T* first, T* second, Index count) {
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      const V weight = Rows::load_some(weights + i, left);
      const V slope = S::fma(S::broadcast(update.added), weight,
                             S::broadcast(update.factor) * Rows::load_some(gradient + i, left));
      const V old = Rows::load_some(first + i, left);
      const V mean = forgets ? S::fma(S::broadcast(1 - update.keep1), old - slope, slope)
                             : S::fma(S::broadcast(update.keep1), slope - old, old);
      const V square = S::fma(S::broadcast(update.keep2) * slope, slope,
                              S::broadcast(update.beta2) * Rows::load_some(second + i, left));
      const V size = S::fma(square_root<S>(square), S::broadcast(update.inverse_root),
                            S::broadcast(update.epsilon));
      const V moved =
          S::broadcast(update.shrink) * weight - S::broadcast(update.rate) * (mean / size);
      store_upto<S>(first + i, mean, left);
      store_upto<S>(second + i, square, left);
      store_upto<S>(weights + i, moved, left);
    });
  }

  HEED_KERNEL static void sgd(const SgdUpdate<T>& update, T* weights, const T* gradient,
                              T* velocity, Index count) {
    const V momentum = S::broadcast(update.momentum);
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      const V weight = Rows::load_some(weights + i, left);
      const V slope = S::broadcast(update.factor) * Rows::load_some(gradient + i, left) +
                      S::broadcast(update.decay) * weight;
      const V speed = momentum * Rows::load_some(velocity + i, left) + slope;
      const V move = update.nesterov ? slope + momentum * speed : speed;
      store_upto<S>(velocity + i, speed, left);
      store_upto<S>(weights + i, weight - S::broadcast(update.rate) * move, left);
    });
  }
};

template <class T>
const TrainingKernels<T>& training_table() {
  using K = TrainingTable<T>;
  static constexpr TrainingKernels<T> entries{K::sum_of_squares, K::sum,  K::maximum,
                                              K::exponentials,   K::adam, K::sgd};
  return entries;
}

// Norms of rows and their gradients.

template <class T>
struct NormTable {
  using S = Lanes<T>;
  using V = typename S::V;
  using Rows = RowTable<T>;
  static constexpr int ways = 4;  // independent sums, so that additions overlap

  /// x - center, and zeros at the end of a row.
  HEED_SIMD static V difference(const T* x, T center, Index left) {
    const V all = Rows::load_some(x, left) - S::broadcast(center);
    if (left >= S::width) return all;
    return S::select(S::mask_of((1u << left) - 1), all, S::broadcast(0));
  }
  /// Σ of the terms that term(sum, i, left) adds for each vector of a row.
  template <class Term>
  HEED_SIMD static T sum_of(Index count, const Term& term) {
    V sums[ways];
    HEED_UNROLL for (int way = 0; way < ways; ++way) sums[way] = S::broadcast(0);
    Index i = 0;
    for (; i + ways * S::width <= count; i += ways * S::width) {
      HEED_UNROLL for (int way = 0; way < ways; ++way) {
        sums[way] = term(sums[way], i + way * S::width, S::width);
      }
    }
    HEED_UNROLL for (int way = 0; way < ways; ++way, i += S::width) {
      if (i >= count) break;
      sums[way] = term(sums[way], i, count - i);
    }
    return first_of(folded<S::width / 2>((sums[0] + sums[1]) + (sums[2] + sums[3])));
  }

  HEED_SIMD static T plain_sum(const T* x, Index count) {
    return sum_of(count, [&](V sum, Index i, Index left) HEED_LAMBDA {
      const V numbers = Rows::load_some(x + i, left);
      return sum + numbers;
    });
  }

  /// Adds the second half of the lanes to the first one, and goes on with that.
  template <int Half>
  HEED_SIMD static V folded(V sums) {
    if constexpr (Half == 0) {
      return sums;
    } else {
      constexpr auto lanes = std::make_integer_sequence<int, S::width>();
      return folded<Half / 2>(sums + turned<Half>(sums, lanes));
    }
  }
  template <int By, int... Lane>
  HEED_SIMD static V turned(V x, std::integer_sequence<int, Lane...>) {
#if HEED_SIMD_BYTES == 0
    return x;
#else
    return __builtin_shufflevector(x, x, ((Lane + By) % S::width)...);
#endif
  }
  HEED_SIMD static T first_of(V x) {
#if HEED_SIMD_BYTES == 0
    return x;
#else
    return x[0];
#endif
  }

  HEED_SIMD static T root(T x) { return first_of(square_root<S>(S::broadcast(x))); }

  HEED_KERNEL static void forward(const NormRun<T>& run, Index rows, const T* x, T* normalized,
                                  T* factors, T* y) {
    const Index width = run.width;
    const auto count = static_cast<T>(width);
    for (Index row = 0; row < rows; ++row, x += width, y += width) {
      T mean = run.centered ? plain_sum(x, width) / count : T{0};
      const auto rest = [&](V sum, Index i, Index left) HEED_LAMBDA {
        const V root = difference(x + i, mean, left);
        return sum + root;
      };
      const auto square = [&](V sum, Index i, Index left) HEED_LAMBDA {
        const V root = difference(x + i, mean, left);
        return S::fma(root, root, sum);
      };
      T spread = sum_of(width, square) / count + run.epsilon;
      if (mean * mean > T{65536} * spread) {  // the rounding of the mean is not small beside it
        mean += sum_of(width, rest) / count;
        spread = sum_of(width, square) / count + run.epsilon;
      }
      const T factor = T{1} / root(spread);
      for_each_vector<S>(width, [&](Index i, Index left) HEED_LAMBDA {
        V value = (Rows::load_some(x + i, left) - S::broadcast(mean)) * S::broadcast(factor);
        if (normalized) store_upto<S>(normalized + i, value, left);
        value = value * Rows::load_some(run.weight + i, left);
        if (run.bias) value = value + Rows::load_some(run.bias + i, left);
        store_upto<S>(y + i, value, left);
      });
      if (normalized) normalized += width;
      if (factors) factors[row] = factor;
    }
  }

  HEED_SIMD static bool all_zero(const T* row, Index width) {
    Index i = 0;
    while (i < width && row[i] == 0) ++i;
    return i == width;
  }
  /// Writes h = grad · weight to grad_x, and adds a row to the gradients of weight and bias.
  HEED_SIMD static void scale_row(const NormRun<T>& run, const NormGradientRun<T>& at) {
    for_each_vector<S>(run.width, [&](Index i, Index left) HEED_LAMBDA {
      const V grad = Rows::load_some(at.grad + i, left);
      const V normal = Rows::load_some(at.normalized + i, left);
      store_upto<S>(at.grad_x + i, grad * Rows::load_some(run.weight + i, left), left);
      const V weight = Rows::load_some(at.grad_weight + i, left);
      store_upto<S>(at.grad_weight + i, S::fma(grad, normal, weight), left);
      if (at.grad_bias == nullptr) return;
      store_upto<S>(at.grad_bias + i, Rows::load_some(at.grad_bias + i, left) + grad, left);
    });
  }
  HEED_KERNEL static void backward(const NormRun<T>& run, Index rows,
                                   const NormGradientRun<T>& gradients) {
    const Index width = run.width;
    const auto count = static_cast<T>(width);
    auto at = gradients;
    for (; rows > 0; --rows, at.grad += width, at.normalized += width, at.grad_x += width) {
      const T factor = *at.factors++;
      const T* residual = at.residual;
      if (residual) at.residual += width;
      if (all_zero(at.grad, width)) {
        for (Index i = 0; i < width; ++i) at.grad_x[i] = residual ? residual[i] + T{0} : T{0};
        continue;
      }
      scale_row(run, at);
      const T mean = run.centered ? plain_sum(at.grad_x, width) / count : T{0};
      const auto product = [&](V sum, Index i, Index left) HEED_LAMBDA {
        return S::fma(Rows::load_some(at.grad_x + i, left),
                      Rows::load_some(at.normalized + i, left), sum);
      };
      const T slope = sum_of(width, product) / count;
      const auto down = S::broadcast(-slope);
      for_each_vector<S>(width, [&](Index i, Index left) HEED_LAMBDA {
        V value = Rows::load_some(at.grad_x + i, left) - S::broadcast(mean);
        value = S::fma(down, Rows::load_some(at.normalized + i, left), value);
        value = value * S::broadcast(factor);
        if (residual) value = value + Rows::load_some(residual + i, left);
        store_upto<S>(at.grad_x + i, value, left);
      });
    }
  }
};

template <class T>
const NormKernels<T>& norm_table() {
  static constexpr NormKernels<T> entries{NormTable<T>::forward, NormTable<T>::backward};
  return entries;
}
