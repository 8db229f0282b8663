// SPDX-License-Identifier: MIT
// What layers do with rows. Included by part.inl.

template <class T>
struct RowTable {
  using S = Lanes<T>;
  using V = typename S::V;

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
  HEED_KERNEL static void shift_scale(const T* x, T shift, T factor, T* out, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      const V shifted = load_some(x + i, left) - S::broadcast(shift);
      store_some(out + i, shifted * S::broadcast(factor), left);
    }
  }

  HEED_KERNEL static void turn(const T* cosines, const T* sines, T* a, T* b, Index count) {
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      const V cosine = load_some(cosines + i, left), sine = load_some(sines + i, left);
      const V real = load_some(a + i, left), imaginary = load_some(b + i, left);
      store_some(a + i, real * cosine - imaginary * sine, left);
      store_some(b + i, imaginary * cosine + real * sine, left);
    }
  }

  template <Activation f>
  HEED_SIMD static void activate_as(const T* x, T* out, T* slopes, Index count) {
    if (slopes == nullptr) {
      for (Index i = 0; i < count; i += S::width) {
        const Index left = count - i;
        store_some(out + i, activation<f, S>(load_some(x + i, left)), left);
      }
      return;
    }
    for (Index i = 0; i < count; i += S::width) {
      const Index left = count - i;
      V slope;
      store_some(out + i, activation<f, S>(load_some(x + i, left), &slope), left);
      store_some(slopes + i, slope, left);
    }
  }
  HEED_KERNEL static void activate(Activation f, const T* x, T* out, T* slopes, Index count) {
    switch (f) {
      case Activation::relu:
        return activate_as<Activation::relu>(x, out, slopes, count);
      case Activation::gelu:
        return activate_as<Activation::gelu>(x, out, slopes, count);
      case Activation::gelu_tanh:
        return activate_as<Activation::gelu_tanh>(x, out, slopes, count);
      case Activation::silu:
        return activate_as<Activation::silu>(x, out, slopes, count);
    }
  }
};

/// The set's row functions behind pointers.
template <class T>
const RowKernels<T>& row_table() {
  using K = RowTable<T>;
  static constexpr RowKernels<T> entries{K::add,  K::multiply, K::shift_scale,
                                         K::turn, K::activate, DropTable<T>::drop};
  return entries;
}
