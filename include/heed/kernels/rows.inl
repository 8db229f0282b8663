// SPDX-License-Identifier: MIT
// Functions of layers, losses and optimizers on rows, and norms. Included by part.inl.

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
    constexpr int ways = 16;
    double sums[ways] = {};
    Index i = 0;
    for (; i + ways <= count; i += ways) {
      HEED_UNROLL for (int way = 0; way < ways; ++way) {
        const auto value = static_cast<double>(x[i + way]);
        sums[way] += squared ? value * value : value;
      }
    }
    for (int way = 0; i < count; ++i, ++way) {
      const auto value = static_cast<double>(x[i]);
      sums[way] += squared ? value * value : value;
    }
    for (int half = ways / 2; half > 0; half /= 2) {
      for (int way = 0; way < half; ++way) sums[way] += sums[way + half];
    }
    return sums[0];
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
    for_each_vector<S>(count, [&](Index i, Index left) HEED_LAMBDA {
      const V weight = Rows::load_some(weights + i, left);
      const V slope = S::fma(S::broadcast(update.added), weight,
                             S::broadcast(update.factor) * Rows::load_some(gradient + i, left));
      V mean = Rows::load_some(first + i, left);
      mean = S::fma(S::broadcast(update.keep1), slope - mean, mean);
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
};

template <class T>
const TrainingKernels<T>& training_table() {
  using K = TrainingTable<T>;
  static constexpr TrainingKernels<T> entries{K::sum_of_squares, K::sum, K::maximum,
                                              K::exponentials, K::adam};
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
