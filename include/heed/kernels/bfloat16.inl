// SPDX-License-Identifier: MIT
// Conversions between bfloat16 and T; double is only read. Included by part.inl.

template <class T>
struct Bfloat16Table {
  using S = Lanes<T>;

  HEED_SIMD static T wide(std::uint16_t bits) {
    return static_cast<T>(__builtin_bit_cast(float, std::uint32_t{bits} << 16));
  }
  /// Like core/bfloat16.hpp.
  HEED_SIMD static std::uint16_t narrowed(T value) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }

  HEED_SIMD static void widen_row(const std::uint16_t* from, Index step, Index columns, T* to) {
    Index column = 0;
#if HEED_SIMD_BYTES != 0
    if constexpr (sizeof(T) == 4) {
      for (; step == 1 && column + S::width <= columns; column += S::width) {
        S::store(to + column, load_wide<S>(from + column));
      }
    }
#endif
    for (; column < columns; ++column) to[column] = wide(from[column * step]);
  }
  HEED_KERNEL static void widen(MatrixRef<std::uint16_t> from, Index rows, Index columns, T* to) {
    if (from.column_stride == 1 && from.row_stride == columns) {
      return widen_row(from.data, 1, rows * columns, to);
    }
    for (Index row = 0; row < rows; ++row) {
      widen_row(from.data + row * from.row_stride, from.column_stride, columns, to + row * columns);
    }
  }

  HEED_SIMD static void put(std::uint16_t bits, std::uint16_t& to) { to = bits; }
  HEED_SIMD static void put(std::uint16_t bits, T& to) { to = wide(bits); }

  /// A row rounded, in bits or in T.
  template <class To>
  HEED_SIMD static void round_row(const T* from, Index step, Index columns, To* to) {
    Index column = 0;
#if HEED_SIMD_BYTES != 0
    for (; step == 1 && column + S::width <= columns; column += S::width) {
      const auto bits = rounded_to_bfloat16(S::load(from + column));
      if constexpr (sizeof(To) == 2) {
        store_lower_halves(to + column, bits >> 16);
      } else {
        S::store(to + column, (typename S::V)(bits & 0xffff0000));
      }
    }
#endif
    for (; column < columns; ++column) put(narrowed(from[column * step]), to[column]);
  }
  template <class To>
  HEED_KERNEL static void round(MatrixRef<T> from, Index rows, Index columns, To* to,
                                Index to_row) {
    if (from.column_stride == 1 && from.row_stride == columns && to_row == columns) {
      return round_row(from.data, 1, rows * columns, to);
    }
    for (Index row = 0; row < rows; ++row, to += to_row) {
      round_row(from.data + row * from.row_stride, from.column_stride, columns, to);
    }
  }
};

template <class T>
const Bfloat16Kernels<T>& bfloat16_table() {
  using K = Bfloat16Table<T>;
  if constexpr (sizeof(T) != 4) {
    static constexpr Bfloat16Kernels<T> entries{K::widen, nullptr, nullptr, nullptr, nullptr};
    return entries;
  } else {
#if HEED_SIMD_BYTES >= 32
    using Decode = BitDecode<T>;
    static constexpr Bfloat16Kernels<T> entries{K::widen, K::template round<std::uint16_t>,
                                                K::template round<T>, Decode::scores,
                                                Decode::attend};
#else
    static constexpr Bfloat16Kernels<T> entries{K::widen, K::template round<std::uint16_t>,
                                                K::template round<T>, nullptr, nullptr};
#endif
    return entries;
  }
}
