// SPDX-License-Identifier: MIT
// Vectors for quantized weights. Included by part.inl.

struct QuantizedWords {
  using S = Lanes<float>;
  using V = S::V;
  static constexpr Index terms = QuantizedPanel::terms;

#if HEED_SIMD_BYTES == 0
  using Words = std::int32_t;
  using Unsigned = std::uint32_t;
  using Halves = std::uint16_t;
  HEED_SIMD static V numbers(Words words) { return static_cast<float>(words); }
  HEED_SIMD static Unsigned widened(Halves halves) { return halves; }
#else
  using Words = S::M;
  typedef std::uint32_t Unsigned __attribute__((vector_size(HEED_SIMD_BYTES)));
  typedef std::uint16_t Halves __attribute__((vector_size(HEED_SIMD_BYTES / 2)));
  HEED_SIMD static V numbers(Words words) { return __builtin_convertvector(words, V); }
  HEED_SIMD static Unsigned widened(Halves halves) {
    return __builtin_convertvector(halves, Unsigned);
  }
#endif
  template <class Vector>
  HEED_SIMD static Vector load(const void* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof(vector));
    return vector;
  }

  /// Half precision as float.
  HEED_SIMD static V from_halves(const std::uint8_t* from) {
#if HEED_SIMD_BYTES == 64
    typedef std::int16_t Signed __attribute__((vector_size(32)));
    return __builtin_ia32_vcvtph2ps512_mask(load<Signed>(from), V{},
                                            static_cast<unsigned short>(-1), 4);
#else
    // A product moves the exponent; infinities and NaN are their own.
    const Unsigned halves = widened(load<Halves>(from));
    const Unsigned magnitude = (halves & 0x7fff) << 13;
    const V moved = __builtin_bit_cast(V, magnitude) * S::broadcast(0x1p112f);
    const Unsigned special = magnitude >= 0x0f800000 ? Unsigned{} + 0x7f800000u : Unsigned{};
    return __builtin_bit_cast(
        V, __builtin_bit_cast(Unsigned, moved) | special | (halves & 0x8000) << 16);
#endif
  }

  static constexpr bool has_least(QuantizedCodes codes) { return codes == QuantizedCodes::nibbles; }
};
