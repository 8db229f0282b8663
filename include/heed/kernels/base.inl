// SPDX-License-Identifier: MIT
#pragma once

// Vectors and the product of micro tiles of every instruction set: the base of all kernels.

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <heed/core/index.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/kernels/matrix_ref.hpp>

#define HEED_SIMD_PART 0
#include <heed/kernels/each_isa.inl>

// The body of a function that returns the active set's `table<T>()`.
#if defined(__x86_64__)
#define HEED_SIMD_VECTOR_TABLES(table) \
  case Isa::sse2:                      \
    return sse2_kernels::table<T>();   \
  case Isa::avx2:                      \
    return avx2_kernels::table<T>();   \
  case Isa::avx512:                    \
  case Isa::avx512_bf16:               \
  case Isa::amx:                       \
  case Isa::amx_twin:                  \
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
