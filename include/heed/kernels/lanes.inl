// SPDX-License-Identifier: MIT
// Vectors of HEED_SIMD_BYTES bytes and the operations that kernels need: arithmetic, bfloat16, lane
// words, powers of two and tanh, vectors at the end of an array; then random numbers.
// Written with the vector extensions of GCC and Clang; builtins only where those have no equivalent
// (fused multiply-add, and min/max with the hardware's rule that a NaN in the second operand stays;
// NEON keeps either): a > b ? a : b would be two instructions. Included by part.inl.

/// Constants: a call of the standard library would stay one where only kernels are optimized.
template <class Float>
struct LaneTypes;
template <>
struct LaneTypes<float> {
  using Int = std::int32_t;
  static constexpr float lowest = std::numeric_limits<float>::lowest();
  static constexpr int mantissa_bits = 23;
  static constexpr int bias = 127;
};
template <>
struct LaneTypes<double> {
  using Int = std::int64_t;
  static constexpr double lowest = std::numeric_limits<double>::lowest();
  static constexpr int mantissa_bits = 52;
  static constexpr int bias = 1023;
};

#if HEED_SIMD_BYTES == 0
/// One lane: the same kernels without vectors, for checking and for unknown machines.
template <class Float>
struct Lanes {
  using Scalar = Float;
  using Int = typename LaneTypes<Float>::Int;
  using V = Float;
  using Ints = Int;
  using M = bool;
  static constexpr int width = 1;

  HEED_SIMD static V load(const Float* from) { return *from; }
  HEED_SIMD static void store(Float* to, V value) { *to = value; }
  HEED_SIMD static V broadcast(Float value) { return value; }
  HEED_SIMD static V fma(V a, V b, V c) { return a * b + c; }
  HEED_SIMD static V max(V a, V b) { return a > b ? a : b; }
  HEED_SIMD static V min(V a, V b) { return a < b ? a : b; }
  HEED_SIMD static M mask_of(std::uint64_t word) { return (word & 1) != 0; }
  HEED_SIMD static V select(M mask, V yes, V no) { return mask ? yes : no; }
  HEED_SIMD static M greater(V a, V b) { return a > b; }
  HEED_SIMD static bool any(M mask) { return mask; }
  HEED_SIMD static V shift_to_exponent(V value) {
    using Unsigned = std::make_unsigned_t<Int>;
    return __builtin_bit_cast(Float, __builtin_bit_cast(Unsigned, value)
                                         << LaneTypes<Float>::mantissa_bits);
  }
};
#else
template <class Float>
struct Lanes {
  using Scalar = Float;
  using Int = typename LaneTypes<Float>::Int;
  static constexpr int width = HEED_SIMD_BYTES / static_cast<int>(sizeof(Float));
  typedef Float V __attribute__((vector_size(HEED_SIMD_BYTES)));
  typedef Int Ints __attribute__((vector_size(HEED_SIMD_BYTES)));
  typedef Float Unaligned
      __attribute__((vector_size(HEED_SIMD_BYTES), aligned(sizeof(Float)), may_alias));

  HEED_SIMD static V load(const Float* from) { return *reinterpret_cast<const Unaligned*>(from); }
  HEED_SIMD static void store(Float* to, V value) { *reinterpret_cast<Unaligned*>(to) = value; }
  // Subtracts zero instead of adding it: x - 0 is x for every x, so no instruction remains.
  HEED_SIMD static V broadcast(Float value) { return value - V{}; }
  HEED_SIMD static V shift_to_exponent(V value) {
    return (V)((Ints)value << LaneTypes<Float>::mantissa_bits);
  }

  // Masks M; mask_of(word) sets lane i where bit i of `word` is.
#if HEED_SIMD_BYTES == 64
  using M = std::conditional_t<width == 8, std::uint8_t, std::uint16_t>;  // a mask register

  HEED_SIMD static M mask_of(std::uint64_t word) { return static_cast<M>(word); }
  HEED_SIMD static bool any(M mask) { return mask != 0; }
  HEED_SIMD static M greater(V a, V b) {
    HEED_RETURN_X86(cmp, 512_mask, a, b, 14, all, 4);  // 14: greater
  }
  HEED_SIMD static M not_less(V a, V b) {
    HEED_RETURN_X86(cmp, 512_mask, a, b, 5, all, 4);  // 5: not less, or NaN
  }
#if defined(__clang__)
  HEED_SIMD static V select(M mask, V yes, V no) { HEED_RETURN_X86(select, _512, mask, yes, no); }
#else
  HEED_SIMD static V select(M mask, V yes, V no) {
    HEED_RETURN_X86(blendm, _512_mask, no, yes, mask);
  }
#endif
#else
  using M = Ints;

  HEED_SIMD static M mask_of(std::uint64_t word) {
    M bit_of_lane;
    HEED_UNROLL for (int i = 0; i < width; ++i) bit_of_lane[i] = static_cast<Int>(1) << i;
    return (bit_of_lane & (static_cast<Int>(word) - M{})) != 0;
  }
  HEED_SIMD static bool any(M mask) {
    typedef std::uint64_t Words __attribute__((vector_size(HEED_SIMD_BYTES)));
    std::uint64_t found = 0;
    HEED_UNROLL for (int i = 0; i < HEED_SIMD_BYTES / 8; ++i) found |= ((Words)mask)[i];
    return found != 0;
  }
  HEED_SIMD static M greater(V a, V b) { return a > b; }
  HEED_SIMD static V select(M mask, V yes, V no) { return mask ? yes : no; }
#endif

#if HEED_SIMD_BYTES == 64
  // The 512-bit builtins take a lane mask and a rounding mode: all lanes, the current mode (4).
  static constexpr auto all = static_cast<M>(-1);

  HEED_SIMD static V fma(V a, V b, V c) { HEED_RETURN_X86(vfmadd, 512_mask, a, b, c, all, 4); }
#if defined(__clang__)
  HEED_SIMD static V max(V a, V b) { HEED_RETURN_X86(max, 512, a, b, 4); }
  HEED_SIMD static V min(V a, V b) { HEED_RETURN_X86(min, 512, a, b, 4); }
#else
  HEED_SIMD static V max(V a, V b) { HEED_RETURN_X86(max, 512_mask, a, b, a, all, 4); }
  HEED_SIMD static V min(V a, V b) { HEED_RETURN_X86(min, 512_mask, a, b, a, all, 4); }
#endif
#elif HEED_SIMD_BYTES == 32
#if HEED_CLANG_HAS(__builtin_elementwise_fma)
  HEED_SIMD static V fma(V a, V b, V c) { return __builtin_elementwise_fma(a, b, c); }
#else
  HEED_SIMD static V fma(V a, V b, V c) { HEED_RETURN_X86(vfmadd, 256, a, b, c); }
#endif
  HEED_SIMD static V max(V a, V b) { HEED_RETURN_X86(max, 256, a, b); }
  HEED_SIMD static V min(V a, V b) { HEED_RETURN_X86(min, 256, a, b); }
#elif defined(__aarch64__)
  HEED_SIMD static V fma(V a, V b, V c) {
    if constexpr (sizeof(Float) == 4)
      return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
    else
      return (V)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
  }
  HEED_SIMD static V max(V a, V b) {
    if constexpr (sizeof(Float) == 4)
      return (V)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
    else
      return (V)vmaxq_f64((float64x2_t)a, (float64x2_t)b);
  }
  HEED_SIMD static V min(V a, V b) {
    if constexpr (sizeof(Float) == 4)
      return (V)vminq_f32((float32x4_t)a, (float32x4_t)b);
    else
      return (V)vminq_f64((float64x2_t)a, (float64x2_t)b);
  }
#else
  // SSE2 has no fused multiply-add: two roundings, the same ones in every lane.
  HEED_SIMD static V fma(V a, V b, V c) { return a * b + c; }
  HEED_SIMD static V max(V a, V b) { return a > b ? a : b; }
  HEED_SIMD static V min(V a, V b) { return a < b ? a : b; }
#endif
};
#endif

#if HEED_SIMD_BYTES == 0
using HalfWords = std::uint16_t;
using WholeWords = std::uint32_t;

HEED_SIMD WholeWords load_widened(const void* from) {
  HalfWords number;
  __builtin_memcpy(&number, from, sizeof(number));
  return number;
}
HEED_SIMD HalfWords lower_halves(WholeWords word) { return static_cast<HalfWords>(word); }
#else
typedef std::uint16_t HalfWords __attribute__((vector_size(HEED_SIMD_BYTES / 2)));
typedef std::uint32_t WholeWords __attribute__((vector_size(HEED_SIMD_BYTES)));

/// Numbers of 16 bits at `from`, a vector's lanes of them, each in the lower half of its lane. g++
/// converts the halves of a vector and joins them, which takes four more instructions.
HEED_SIMD WholeWords load_widened(const void* from) {
  HalfWords halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
#if HEED_SIMD_BYTES == 32 && !defined(__clang__)
  typedef short Signed __attribute__((vector_size(16)));
  return (WholeWords)__builtin_ia32_pmovzxwd256((Signed)halves);
#elif HEED_SIMD_BYTES == 64 && !defined(__clang__)
  typedef short Signed __attribute__((vector_size(32)));
  typedef int Ints __attribute__((vector_size(64)));
  return (WholeWords)__builtin_ia32_pmovzxwd512_mask((Signed)halves, Ints{},
                                                     static_cast<unsigned short>(-1));
#else
  return __builtin_convertvector(halves, WholeWords);
#endif
}
/// The lower halves of lanes, side by side; with vectors of 32 bytes the upper halves must be 0.
/// g++ masks, shuffles and joins them, in five instructions.
HEED_SIMD HalfWords lower_halves(WholeWords words) {
#if HEED_SIMD_BYTES == 32 && !defined(__clang__)
  typedef int Four __attribute__((vector_size(16)));
  const auto low = (Four)__builtin_shufflevector(words, words, 0, 1, 2, 3);
  const auto high = (Four)__builtin_shufflevector(words, words, 4, 5, 6, 7);
  return (HalfWords)__builtin_ia32_packusdw128(low, high);
#elif HEED_SIMD_BYTES == 64 && !defined(__clang__)
  typedef short Signed __attribute__((vector_size(32)));
  typedef int Ints __attribute__((vector_size(64)));
  return (HalfWords)__builtin_ia32_pmovdw512_mask((Ints)words, Signed{},
                                                  static_cast<unsigned short>(-1));
#else
  return __builtin_convertvector(words, HalfWords);
#endif
}
#endif
/// Floats rounded to bfloat16 as by core/bfloat16.hpp, in the upper halves of lanes; the lower
/// halves are anything.
template <class V>
HEED_SIMD WholeWords rounded_to_bfloat16(V x) {
  const auto bits = __builtin_bit_cast(WholeWords, x);
  return x == x ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x400000;
}
HEED_SIMD void store_lower_halves(void* to, WholeWords words) {
  const HalfWords halves = lower_halves(words);
  __builtin_memcpy(to, &halves, sizeof(halves));
}
/// Those of two vectors, in fewer instructions than one by one where lower_halves takes several.
HEED_SIMD void store_lower_halves(void* to, WholeWords first, WholeWords second) {
#if HEED_SIMD_BYTES == 32 && !defined(__clang__)
  typedef int Eight __attribute__((vector_size(32)));
  typedef long long Four __attribute__((vector_size(32)));
  constexpr int first_then_second = 0xd8;  // quarters 0, 2, 1, 3
  const auto mixed = (Four)__builtin_ia32_packusdw256((Eight)first, (Eight)second);
  const auto halves = __builtin_ia32_permdi256(mixed, first_then_second);
  __builtin_memcpy(to, &halves, sizeof(halves));
#else
  store_lower_halves(to, first);
  store_lower_halves(static_cast<char*>(to) + sizeof(HalfWords), second);
#endif
}

/// A vector's lanes of numbers at `from`, in double.
HEED_SIMD Lanes<double>::V load_in_double(const double* from) { return Lanes<double>::load(from); }
HEED_SIMD Lanes<double>::V load_in_double(const float* from) {
#if HEED_SIMD_BYTES == 0
  return static_cast<double>(*from);
#else
  typedef float Half __attribute__((vector_size(HEED_SIMD_BYTES / 2)));
  Half numbers;
  __builtin_memcpy(&numbers, from, sizeof(numbers));
  return __builtin_convertvector(numbers, Lanes<double>::V);
#endif
}

// Lane words, with a bit for each lane, in rows of a word per key.

/// Some lanes or keys, [first, end).
struct Range {
  Index first = 0;
  Index end = 0;
};

/// The word of the lanes [lane, lane + count), one at least.
HEED_SIMD std::uint64_t word_of_lanes(Index lane, Index count) {
  return ~std::uint64_t{0} >> (64 - count) << lane;
}
/// The range from the first to the last of the keys [0, count) that one of `lanes` sees.
HEED_SIMD Range seen_by(const std::uint64_t* words, Index count, std::uint64_t lanes) {
  Range keys{0, count};
  if (words == nullptr) return keys;
  while (keys.first < keys.end && (words[keys.first] & lanes) == 0) ++keys.first;
  while (keys.end > keys.first && (words[keys.end - 1] & lanes) == 0) --keys.end;
  return keys;
}
/// The first of some keys that not all of `lanes` see, or their end.
HEED_SIMD Index not_seen_by_all(const std::uint64_t* words, Range keys, std::uint64_t lanes) {
  while (keys.first < keys.end && (words[keys.first] & lanes) == lanes) ++keys.first;
  return keys.first;
}
/// The range from the first to the last of the lanes [0, count) that sees one of the keys
/// [key, key + rows).
HEED_SIMD Range seeing(const std::uint64_t* words, Index key, Index rows, Index count) {
  if (words == nullptr) return {0, count};
  std::uint64_t any = 0;
  for (Index r = 0; r < rows; ++r) any |= words[key + r];
  if (any == 0) return {};
  return {__builtin_ctzll(any), 64 - __builtin_clzll(any)};
}

/// Coefficients of 2^f = 1 + f·(c1 + f·(c2 + …)) on [-1/2, 1/2], fitted for least relative error:
/// 3.9e-9 before rounding for float (degree 6), 1.8e-17 for double (degree 11).
template <class Float>
struct Exp2Coefficients;
template <>
struct Exp2Coefficients<float> {
  static constexpr int degree = 6;
  static constexpr float values[degree] = {0x1.62e432p-1f, 0x1.ebfbe0p-3f,  0x1.c6ae2cp-5f,
                                           0x1.3b29e4p-7f, 0x1.5f88fep-10f, 0x1.446c7ep-13f};
};
template <>
struct Exp2Coefficients<double> {
  static constexpr int degree = 11;
  static constexpr double values[degree] = {
      6.93147180559945730e-01, 2.40226506959100972e-01, 5.55041086647903928e-02,
      9.61812910760700274e-03, 1.33335581534399701e-03, 1.54035304415718502e-04,
      1.52527273851897754e-05, 1.32154426754528543e-06, 1.01806476605730689e-07,
      7.07257039454079928e-09, 4.07807178609287046e-10};
};

/// 2^x = exponent · (1 + slope · fraction).
template <class S>
struct SplitPower {
  typename S::V exponent;  // 2 to the nearest integer of x
  typename S::V fraction;  // x minus that integer
  typename S::V slope;     // (2^fraction - 1) / fraction, a polynomial
};

/// The slope of 2^fraction: (2^fraction - 1) / fraction.
template <class S>
HEED_SIMD typename S::V slope_of(typename S::V fraction) {
  using C = Exp2Coefficients<typename S::Scalar>;
  auto p = S::broadcast(C::values[C::degree - 1]);
  HEED_UNROLL for (int i = C::degree - 2; i >= 0; --i) {
    p = S::fma(p, fraction, S::broadcast(C::values[i]));
  }
  return p;
}

template <class S>
HEED_SIMD SplitPower<S> split_power(typename S::V x) {
  using Float = typename S::Scalar;
  using Types = LaneTypes<Float>;
  // Adding 1.5 · 2^mantissa rounds to an integer in the low bits; the bias added with it makes
  // those bits an exponent.
  constexpr auto shifter =
      static_cast<Float>(std::int64_t{3} << (Types::mantissa_bits - 1)) + Types::bias;
  const auto shifted = x + S::broadcast(shifter);
  const auto f = x - (shifted - S::broadcast(shifter));
  return {S::shift_to_exponent(shifted), f, slope_of<S>(f)};
}

#if HEED_SIMD_BYTES == 64
/// x minus the nearest integer, the even one of two; 0 for ±inf.
template <class S>
HEED_SIMD typename S::V fraction_of(typename S::V x) {
  typename S::V fraction;
  constexpr int nearest = 8;  // without an exception for what is rounded
  if constexpr (sizeof(typename S::Scalar) == 4) {
    asm("vreduceps %2, %1, %0" : "=v"(fraction) : "v"(x), "i"(nearest));
  } else {
    asm("vreducepd %2, %1, %0" : "=v"(fraction) : "v"(x), "i"(nearest));
  }
  return fraction;
}
/// factor · 2^power for integers `power`, and 0 in the lanes that `kept` leaves out.
template <class S>
HEED_SIMD typename S::V scale_by_power(typename S::V factor, typename S::V power,
                                       typename S::M kept) {
  typename S::V product;
  if constexpr (sizeof(typename S::Scalar) == 4) {
    asm("vscalefps %2, %1, %0%{%3%}%{z%}" : "=v"(product) : "v"(factor), "v"(power), "Yk"(kept));
  } else {
    asm("vscalefpd %2, %1, %0%{%3%}%{z%}" : "=v"(product) : "v"(factor), "v"(power), "Yk"(kept));
  }
  return product;
}

/// 2^x. Exactly 0 below 1 - bias (processors take a hundred times as long for denormal numbers)
/// down to -inf, +inf from bias + 1 up, exactly 1 at 0, NaN for NaN. The two instructions spare a
/// processor with two pipes for vectors a quarter of the operations of split_power.
template <class S>
HEED_SIMD typename S::V exp2(typename S::V x) {
  using Float = typename S::Scalar;
  const auto f = fraction_of<S>(x);
  const auto normal = S::not_less(x, S::broadcast(static_cast<Float>(1 - LaneTypes<Float>::bias)));
  return scale_by_power<S>(S::fma(slope_of<S>(f), f, S::broadcast(Float{1})), x - f, normal);
}
#else
/// 2^x. Exactly 0 from x <= -bias - 1/2 down to -inf, +inf from bias + 1 up, exactly 1 at 0, NaN
/// for NaN: the last step is a product, which keeps a NaN that integer arithmetic would lose.
template <class S>
HEED_SIMD typename S::V exp2(typename S::V x) {
  using Float = typename S::Scalar;
  const auto low = S::broadcast(static_cast<Float>(-LaneTypes<Float>::bias));
  const auto high = S::broadcast(static_cast<Float>(LaneTypes<Float>::bias + 1));
  const auto power = split_power<S>(S::min(high, S::max(low, x)));
  return S::fma(power.slope, power.fraction, S::broadcast(Float{1})) * power.exponent;
}
#endif

/// tanh(x · ln(2) / 2) = (2^x - 1) / (2^x + 1), with 2^x - 1 accurate near 0: by parts,
/// exponent · (power - 1) + (exponent - 1). NaN for NaN.
template <class S>
HEED_SIMD typename S::V tanh_of_log2(typename S::V x) {
  using Float = typename S::Scalar;
  const auto limit = S::broadcast(Float{64});  // where tanh is 1 in double already
  x = S::min(limit, S::max(S::broadcast(Float{-64}), x));
  const auto power = split_power<S>(x);
  const auto above_1 =
      S::fma(power.slope * power.fraction, power.exponent, power.exponent - S::broadcast(Float{1}));
  return above_1 / (above_1 + S::broadcast(Float{2}));
}

// Vectors whose last lanes lie outside an array.

/// The first `count` numbers of `from`, at most a vector; 0 in the other lanes.
template <class S>
HEED_SIMD typename S::V load_first(const typename S::Scalar* from, Index count) {
#if HEED_SIMD_BYTES >= 32
  using Float = typename S::Scalar;
  using V = typename S::V;
  const auto mask = S::mask_of((1u << count) - 1);
#endif
#if HEED_SIMD_BYTES == 64
  HEED_RETURN_X86(loadu, 512_mask, from, V{}, mask);
#elif HEED_SIMD_BYTES == 32
  const auto* at = reinterpret_cast<const V*>(from);  // NOLINT: the instruction needs no alignment
  if constexpr (sizeof(Float) == 4) {
    return __builtin_ia32_maskloadps256(at, mask);
  } else {
    typedef long long Mask __attribute__((vector_size(32)));
    return __builtin_ia32_maskloadpd256(at, (Mask)mask);
  }
#elif HEED_SIMD_BYTES == 16
  // By constant places: a vector that is loaded from numbers just stored would be waited for.
  typename S::V lanes = {};
  HEED_UNROLL for (int i = 0; i < S::width; ++i) {
    if (i < count) lanes[i] = from[i];
  }
  return lanes;
#else
  return count > 0 ? *from : 0;
#endif
}

/// The first `left` numbers, at most a vector. Sets that load by masks always do: they are as fast.
template <class S>
HEED_SIMD typename S::V load_upto(const typename S::Scalar* from, Index left) {
  if (HEED_SIMD_BYTES < 32 && left >= S::width) return S::load(from);
  return load_first<S>(from, left < S::width ? left : S::width);
}

/// Stores the first `count` lanes, fewer than all, to `to`.
template <class S>
HEED_SIMD void store_first(typename S::Scalar* to, typename S::V value, Index count) {
#if HEED_SIMD_BYTES == 64
  using Float = typename S::Scalar;
  HEED_RETURN_X86(storeu, 512_mask, to, value, S::mask_of((1u << count) - 1));
#else
  typename S::Scalar spill[S::width];
  S::store(spill, value);
  for (Index i = 0; i < count; ++i) to[i] = spill[i];
#endif
}

/// Stores a vector, or the first `left` lanes.
template <class S>
HEED_SIMD void store_upto(typename S::Scalar* to, typename S::V value, Index left) {
  left >= S::width ? S::store(to, value) : store_first<S>(to, value, left);
}

/// Random numbers: Philox (core/philox.hpp), one counter per lane. Wide: the type whose vectors
/// have the lanes of 64-bit products.
template <class Wide>
struct PhiloxLanes {
#if HEED_SIMD_BYTES != 0 && defined(__x86_64__)
  static constexpr int width = Lanes<Wide>::width;
  typedef std::uint64_t U __attribute__((vector_size(HEED_SIMD_BYTES)));

  /// Products of the lower halves of the lanes; compilers do not recognize them in a · b.
  HEED_SIMD static U multiply(U a, U b) {
#if HEED_SIMD_BYTES == 16
    asm("pmuludq %1, %0" : "+x"(a) : "x"(b));
    return a;
#else
    U product;
    asm("vpmuludq %2, %1, %0" : "=v"(product) : "v"(a), "v"(b));
    return product;
#endif
  }
  /// 0, 1, 2, … from `first` on.
  HEED_SIMD static U ramp(std::uint64_t first) {
    U lanes = {};
    for (int i = 0; i < width; ++i) lanes[i] = first + static_cast<std::uint64_t>(i);
    return lanes;
  }
  /// Interleaves lanes, a0 b0 a1 b1 …, in two vectors.
  template <int... Lane>
  HEED_SIMD static void interleave(U& a, U& b, std::integer_sequence<int, Lane...>) {
    const U low = __builtin_shufflevector(a, b, ((Lane & 1) * width + Lane / 2)...);
    b = __builtin_shufflevector(a, b, ((Lane & 1) * width + (Lane + width) / 2)...);
    a = low;
  }
#else
  static constexpr int width = 1;
  using U = std::uint64_t;

  HEED_SIMD static U multiply(U a, U b) { return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu); }
  HEED_SIMD static U ramp(std::uint64_t first) { return first; }
  template <int... Lane>
  HEED_SIMD static void interleave(U&, U&, std::integer_sequence<int, Lane...>) {}
#endif

  /// Turns counters into random bits, in the lower halves of the lanes; the upper halves are
  /// ignored.
  HEED_SIMD static void mix(U (&c)[4], const std::uint32_t (&start)[2]) {
    std::uint32_t key[2] = {start[0], start[1]};
    for (int round = 0; round < 10; ++round) {
      const U a = multiply(c[0], U{} + 0xD2511F53), b = multiply(c[2], U{} + 0xCD9E8D57);
      c[0] = b >> 32 ^ c[1] ^ (U{} + key[0]);
      c[1] = b;
      c[2] = a >> 32 ^ c[3] ^ (U{} + key[1]);
      c[3] = a;
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
  }
};
