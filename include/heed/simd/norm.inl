// SPDX-License-Identifier: MIT
// Norms of rows and their gradients. Included by part.inl, after row.inl and training.inl.

template <class T>
struct NormTable {
  using S = Lanes<T>;
  using V = typename S::V;
  using Rows = RowTable<T>;
  static constexpr int ways = 4;  // independent sums, so that additions overlap

  struct Plain {
    const T* x;
    HEED_SIMD V term(V sum, Index i, Index left) const {
      return sum + Rows::load_some(x + i, left);
    }
  };
  struct Product {
    const T* a;
    const T* b;
    HEED_SIMD V term(V sum, Index i, Index left) const {
      return S::fma(Rows::load_some(a + i, left), Rows::load_some(b + i, left), sum);
    }
  };
  struct Square {
    const T* x;
    T center;
    HEED_SIMD V term(V sum, Index i, Index left) const {
      if (left >= S::width) {
        const auto difference = S::load(x + i) - S::broadcast(center);
        return S::fma(difference, difference, sum);
      }
      T spill[S::width];
      for (int lane = 0; lane < S::width; ++lane) spill[lane] = lane < left ? x[i + lane] : center;
      const auto difference = S::load(spill) - S::broadcast(center);
      return S::fma(difference, difference, sum);
    }
  };
  template <class Terms>
  HEED_SIMD static T sum_of(const Terms& terms, Index count) {
    V sums[ways];
    HEED_UNROLL for (int way = 0; way < ways; ++way) sums[way] = S::broadcast(0);
    Index i = 0;
    for (; i + ways * S::width <= count; i += ways * S::width) {
      HEED_UNROLL for (int way = 0; way < ways; ++way) {
        sums[way] = terms.term(sums[way], i + way * S::width, S::width);
      }
    }
    for (int way = 0; i < count; i += S::width, ++way) {
      sums[way] = terms.term(sums[way], i, count - i);
    }
    T spill[S::width];
    S::store(spill, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    HEED_UNROLL for (int half = S::width / 2; half > 0; half /= 2) {
      HEED_UNROLL for (int lane = 0; lane < half; ++lane) spill[lane] += spill[lane + half];
    }
    return spill[0];
  }

  HEED_SIMD static T root(T x) {
    T spill[S::width];
    S::store(spill, square_root<S>(S::broadcast(x)));
    return spill[0];
  }

  HEED_KERNEL static void forward(const NormRun<T>& run, Index rows, const T* x, T* normalized,
                                  T* factors, T* y) {
    const Index width = run.width;
    const auto count = static_cast<T>(width);
    for (Index row = 0; row < rows; ++row, x += width, y += width) {
      const T mean = run.centered ? sum_of(Plain{x}, width) / count : T{0};
      const T factor = T{1} / root(sum_of(Square{x, mean}, width) / count + run.epsilon);
      for (Index i = 0; i < width; i += S::width) {
        const Index left = width - i;
        V value = (Rows::load_some(x + i, left) - S::broadcast(mean)) * S::broadcast(factor);
        if (normalized) Rows::store_some(normalized + i, value, left);
        value = value * Rows::load_some(run.weight + i, left);
        if (run.bias) value = value + Rows::load_some(run.bias + i, left);
        Rows::store_some(y + i, value, left);
      }
      if (normalized) normalized += width;
      if (factors) factors[row] = factor;
    }
  }

  HEED_SIMD static bool all_zero(const T* row, Index width) {
    Index i = 0;
    while (i < width && row[i] == 0) ++i;
    return i == width;
  }
  /// h = grad · weight into grad_x, and what a row adds to the gradients of weight and bias.
  HEED_SIMD static void scale_row(const NormRun<T>& run, const NormGradientRun<T>& at) {
    for (Index i = 0; i < run.width; i += S::width) {
      const Index left = run.width - i;
      const V grad = Rows::load_some(at.grad + i, left);
      const V normal = Rows::load_some(at.normalized + i, left);
      Rows::store_some(at.grad_x + i, grad * Rows::load_some(run.weight + i, left), left);
      const V weight = Rows::load_some(at.grad_weight + i, left);
      Rows::store_some(at.grad_weight + i, S::fma(grad, normal, weight), left);
      if (at.grad_bias == nullptr) continue;
      Rows::store_some(at.grad_bias + i, Rows::load_some(at.grad_bias + i, left) + grad, left);
    }
  }
  HEED_KERNEL static void backward(const NormRun<T>& run, Index rows,
                                   const NormGradientRun<T>& gradients) {
    const Index width = run.width;
    const auto count = static_cast<T>(width);
    auto at = gradients;
    for (; rows > 0; --rows, at.grad += width, at.normalized += width, at.grad_x += width) {
      const T factor = *at.factors++;
      if (all_zero(at.grad, width)) {
        for (Index i = 0; i < width; ++i) at.grad_x[i] = 0;
        continue;
      }
      scale_row(run, at);
      const T mean = run.centered ? sum_of(Plain{at.grad_x}, width) / count : T{0};
      const T slope = sum_of(Product{at.grad_x, at.normalized}, width) / count;
      const auto down = S::broadcast(-slope);
      for (Index i = 0; i < width; i += S::width) {
        const Index left = width - i;
        V value = Rows::load_some(at.grad_x + i, left) - S::broadcast(mean);
        value = S::fma(down, Rows::load_some(at.normalized + i, left), value);
        Rows::store_some(at.grad_x + i, value * S::broadcast(factor), left);
      }
    }
  }
};

/// The set's norms behind pointers.
template <class T>
const NormKernels<T>& norm_table() {
  static constexpr NormKernels<T> entries{NormTable<T>::forward, NormTable<T>::backward};
  return entries;
}
