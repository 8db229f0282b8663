// SPDX-License-Identifier: MIT
// What layers do with rows. Included by part.inl.

template <class T>
struct RowTable {
  using S = Lanes<T>;
  using V = typename S::V;
  static constexpr int ways = 4;  // independent sums, so that additions overlap

  /// The last, partial vector of a row, filled up with zeros.
  HEED_SIMD static V load_part(const T* from, Index count) {
    T spill[S::width] = {};
    for (Index i = 0; i < count; ++i) spill[i] = from[i];
    return S::load(spill);
  }
  HEED_SIMD static V load_some(const T* from, Index count) {
    return count >= S::width ? S::load(from) : load_part(from, count);
  }
  HEED_SIMD static void store_some(T* to, V value, Index count) {
    if (count >= S::width) return S::store(to, value);
    T spill[S::width];
    S::store(spill, value);
    for (Index i = 0; i < count; ++i) to[i] = spill[i];
  }

  HEED_SIMD static T total(const V (&sums)[ways]) {
    T spill[S::width];
    S::store(spill, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    T sum = 0;
    for (const T lane : spill) sum += lane;
    return sum;
  }

  struct Plain {
    const T* x;
    HEED_SIMD V term(V sum, Index i, Index left) const { return sum + load_some(x + i, left); }
  };
  struct Product {
    const T* a;
    const T* b;
    HEED_SIMD V term(V sum, Index i, Index left) const {
      return S::fma(load_some(a + i, left), load_some(b + i, left), sum);
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
    return total(sums);
  }

  HEED_KERNEL static T sum(const T* x, Index count) { return sum_of(Plain{x}, count); }
  HEED_KERNEL static T dot(const T* a, const T* b, Index count) {
    return sum_of(Product{a, b}, count);
  }
  struct Square {
    const T* x;
    T center;
    HEED_SIMD V term(V sum, Index i, Index left) const {
      const auto middle = S::broadcast(center);
      if (left >= S::width) {
        const auto difference = S::load(x + i) - middle;
        return S::fma(difference, difference, sum);
      }
      T spill[S::width];
      for (int lane = 0; lane < S::width; ++lane) spill[lane] = lane < left ? x[i + lane] : center;
      const auto difference = S::load(spill) - middle;
      return S::fma(difference, difference, sum);
    }
  };
  HEED_KERNEL static T squares(const T* x, T center, Index count) {
    return sum_of(Square{x, center}, count);
  }

  HEED_KERNEL static void add(const T* x, T* to, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      store_some(to + i, load_some(to + i, left) + load_some(x + i, left), left);
    }
  }
  HEED_KERNEL static void multiply(const T* a, const T* b, T* out, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      store_some(out + i, load_some(a + i, left) * load_some(b + i, left), left);
    }
  }
  HEED_KERNEL static void multiply_add(const T* a, const T* b, T* to, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      const V sum = S::fma(load_some(a + i, left), load_some(b + i, left), load_some(to + i, left));
      store_some(to + i, sum, left);
    }
  }
  HEED_KERNEL static void normalize(const T* x, T shift, T slope, const T* y, T factor, T* out,
                                    Index count) {
    const auto down = S::broadcast(-slope);
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      V value = load_some(x + i, left) - S::broadcast(shift);
      if (slope != 0) value = S::fma(down, load_some(y + i, left), value);
      store_some(out + i, value * S::broadcast(factor), left);
    }
  }

  template <Activation f>
  HEED_KERNEL static void activate_as(const T* x, T* out, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      store_some(out + i, activation<f, false, S>(load_some(x + i, left)), left);
    }
  }
  template <Activation f>
  HEED_KERNEL static void gradient_as(const T* x, const T* gradient, T* out, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      const V slope = activation<f, true, S>(load_some(x + i, left));
      store_some(out + i, load_some(gradient + i, left) * slope, left);
    }
  }

  HEED_KERNEL static void activate(Activation f, const T* x, T* out, Index count) {
    switch (f) {
      case Activation::relu:
        return activate_as<Activation::relu>(x, out, count);
      case Activation::gelu:
        return activate_as<Activation::gelu>(x, out, count);
      case Activation::gelu_tanh:
        return activate_as<Activation::gelu_tanh>(x, out, count);
      case Activation::silu:
        return activate_as<Activation::silu>(x, out, count);
    }
  }
  HEED_KERNEL static void activate_gradient(Activation f, const T* x, const T* gradient, T* out,
                                            Index count) {
    switch (f) {
      case Activation::relu:
        return gradient_as<Activation::relu>(x, gradient, out, count);
      case Activation::gelu:
        return gradient_as<Activation::gelu>(x, gradient, out, count);
      case Activation::gelu_tanh:
        return gradient_as<Activation::gelu_tanh>(x, gradient, out, count);
      case Activation::silu:
        return gradient_as<Activation::silu>(x, gradient, out, count);
    }
  }
};

/// The set's row functions behind pointers.
template <class T>
const RowKernels<T>& row_table() {
  using K = RowTable<T>;
  static constexpr RowKernels<T> entries{K::sum,       K::dot,      K::squares,
                                         K::add,       K::multiply, K::multiply_add,
                                         K::normalize, K::activate, K::activate_gradient,
                                         DropTable<T>::drop};
  return entries;
}
