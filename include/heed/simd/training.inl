// SPDX-License-Identifier: MIT
// What losses and optimizers do with runs of numbers. Included by part.inl.

/// √x, rounded correctly.
template <class S>
HEED_SIMD typename S::V square_root(typename S::V x) {
#if HEED_SIMD_BYTES == 0
  if constexpr (sizeof(typename S::Scalar) == 4) return __builtin_sqrtf(x);
  return static_cast<typename S::V>(__builtin_sqrt(x));
#elif HEED_SIMD_BYTES == 64 && defined(__clang__)
  if constexpr (sizeof(typename S::Scalar) == 4)
    return __builtin_ia32_sqrtps512(x, 4);
  else
    return __builtin_ia32_sqrtpd512(x, 4);
#elif HEED_SIMD_BYTES == 64
  if constexpr (sizeof(typename S::Scalar) == 4)
    return __builtin_ia32_sqrtps512_mask(x, x, static_cast<unsigned short>(-1), 4);
  else
    return __builtin_ia32_sqrtpd512_mask(x, x, static_cast<unsigned char>(-1), 4);
#elif HEED_SIMD_BYTES == 32
  if constexpr (sizeof(typename S::Scalar) == 4)
    return __builtin_ia32_sqrtps256(x);
  else
    return __builtin_ia32_sqrtpd256(x);
#elif defined(__aarch64__)
  if constexpr (sizeof(typename S::Scalar) == 4)
    return (typename S::V)vsqrtq_f32((float32x4_t)x);
  else
    return (typename S::V)vsqrtq_f64((float64x2_t)x);
#else
  if constexpr (sizeof(typename S::Scalar) == 4)
    return __builtin_ia32_sqrtps(x);
  else
    return __builtin_ia32_sqrtpd(x);
#endif
}

template <class T>
struct TrainingTable {
  using S = Lanes<T>;
  using V = typename S::V;
  using Rows = RowTable<T>;

  /// Sums in double of 16 running totals, so that additions overlap and fill vectors.
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
    // The largest so far stands second, where a NaN would stay: so none gets there.
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
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      Rows::store_some(out + i, exp<S>(Rows::load_some(x + i, left) - down), left);
    }
  }

  HEED_KERNEL static void adam(const AdamUpdate<T>& update, T* weights, const T* gradient, T* first,
                               T* second, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
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
      Rows::store_some(first + i, mean, left);
      Rows::store_some(second + i, square, left);
      Rows::store_some(weights + i, moved, left);
    }
  }
};

/// The set's training functions behind pointers.
template <class T>
const TrainingKernels<T>& training_table() {
  using K = TrainingTable<T>;
  static constexpr TrainingKernels<T> entries{K::sum_of_squares, K::sum, K::maximum,
                                              K::exponentials, K::adam};
  return entries;
}
