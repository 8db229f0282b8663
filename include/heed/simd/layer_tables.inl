// SPDX-License-Identifier: MIT
// The choice among the sets for the kernels of layers. Included at the end of dispatch.inl.

namespace heed::simd {
namespace detail {

// The tables of layers are templates all the way: a program of attention alone is spared their
// compile time.
#if defined(__x86_64__)
#define HEED_SIMD_X86_TABLES(table)  \
  case Isa::sse2:                    \
    return sse2_kernels::table<T>(); \
  case Isa::avx2:                    \
    return avx2_kernels::table<T>(); \
  case Isa::avx512:                  \
    return avx512_kernels::table<T>();
#else
#define HEED_SIMD_X86_TABLES(table)
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
    HEED_SIMD_X86_TABLES(table)        \
    HEED_SIMD_SCALAR_TABLE(table)      \
    default:                           \
      break;                           \
  }                                    \
  __builtin_unreachable()

template <class T>
const ProductKernels<T>& product_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, product_table);
}
template <class T>
const RowKernels<T>& row_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, row_table);
}

#undef HEED_SIMD_TABLE_OF
#undef HEED_SIMD_X86_TABLES
#undef HEED_SIMD_SCALAR_TABLE

}  // namespace detail

template <class T>
const ProductKernels<T>& product_kernels() {
  return detail::product_kernels_of<T>(active());
}
template <class T>
const RowKernels<T>& row_kernels() {
  return detail::row_kernels_of<T>(active());
}
#if defined(HEED_COMPILED_SOURCE)
template const ProductKernels<float>& product_kernels<float>();
template const ProductKernels<double>& product_kernels<double>();
template const RowKernels<float>& row_kernels<float>();
template const RowKernels<double>& row_kernels<double>();
#endif

}  // namespace heed::simd
