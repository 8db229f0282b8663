// SPDX-License-Identifier: MIT
// The choice among the sets for the kernels of attention. Included at the end of dispatch.inl.

namespace heed::simd {
namespace detail {

#if defined(__x86_64__)
#define HEED_SIMD_VECTOR_TABLES(table) \
  case Isa::sse2:                      \
    return sse2_kernels::table<T>();   \
  case Isa::avx2:                      \
    return avx2_kernels::table<T>();   \
  case Isa::avx512:                    \
    return avx512_kernels::table<T>();
#elif defined(__aarch64__)
#define HEED_SIMD_VECTOR_TABLES(table) \
  case Isa::neon:                      \
    return neon_kernels::table<T>();
#else
#define HEED_SIMD_VECTOR_TABLES(table)
#endif
#if HEED_SIMD_HAS_SCALAR
#define HEED_SIMD_SCALAR_TABLE(table) \
  case Isa::scalar:                   \
    return scalar_kernels::table<T>();
#else
#define HEED_SIMD_SCALAR_TABLE(table)
#endif
#define HEED_SIMD_TABLE_OF(isa, table) \
  switch (isa) {                       \
    HEED_SIMD_VECTOR_TABLES(table)     \
    HEED_SIMD_SCALAR_TABLE(table)      \
    default:                           \
      break;                           \
  }                                    \
  __builtin_unreachable()

template <class T>
const Kernels<T>& kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, table);
}
template <class T>
const BackwardKernels<T>& backward_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, backward_table);
}
template <class T>
const DecodeKernels<T>& decode_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, decode_table);
}

}  // namespace detail

template <>
HEED_INLINE const Kernels<float>& kernels<float>() {
  return detail::kernels_of<float>(active());
}
template <>
HEED_INLINE const Kernels<double>& kernels<double>() {
  return detail::kernels_of<double>(active());
}
template <>
HEED_INLINE const BackwardKernels<float>& backward_kernels<float>() {
  return detail::backward_kernels_of<float>(active());
}
template <>
HEED_INLINE const BackwardKernels<double>& backward_kernels<double>() {
  return detail::backward_kernels_of<double>(active());
}
template <>
HEED_INLINE const DecodeKernels<float>& decode_kernels<float>() {
  return detail::decode_kernels_of<float>(active());
}
template <>
HEED_INLINE const DecodeKernels<double>& decode_kernels<double>() {
  return detail::decode_kernels_of<double>(active());
}

}  // namespace heed::simd
