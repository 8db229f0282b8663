// SPDX-License-Identifier: MIT
#pragma once

// The choice among the instruction sets of this architecture at run time.

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <heed/simd/isa.hpp>

// The scalar set is for machines without another one, and for checking the others: heed::compiled
// has it everywhere, header-only units on x86 and AArch64 are spared its compile time.
#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(HEED_COMPILED_SOURCE)
#define HEED_SIMD_HAS_SCALAR 1
#else
#define HEED_SIMD_HAS_SCALAR 0
#endif

// Kernels that are for speed alone, for short sequences above all, take a second to compile:
// heed::compiled has them, header-only units compute the same bits without.
#if defined(HEED_COMPILED_SOURCE)
#define HEED_SIMD_ALL_KERNELS 1
#else
#define HEED_SIMD_ALL_KERNELS 0
#endif

namespace heed::simd {

HEED_INLINE std::string_view name(Isa isa) {
  constexpr std::string_view names[] = {"scalar", "neon", "sse2", "avx2", "avx512", "avx512_bf16"};
  return names[static_cast<int>(isa)];
}

HEED_INLINE bool supported(Isa isa) {
  if (isa == Isa::scalar) return HEED_SIMD_HAS_SCALAR == 1;
#if defined(__aarch64__)
  return isa == Isa::neon;
#elif defined(__x86_64__)
  switch (isa) {
    case Isa::sse2:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    case Isa::avx512_bf16:
      return supported(Isa::avx512) && __builtin_cpu_supports("avx512bf16") &&
             __builtin_cpu_supports("avx512vnni");
    default:
      break;
  }
#endif
  return false;
}

namespace detail {

/// The best supported set, or the one that HEED_ISA asks for.
inline Isa choose() {
  constexpr Isa fastest_first[] = {Isa::avx512_bf16, Isa::avx512, Isa::avx2,
                                   Isa::sse2,        Isa::neon,   Isa::scalar};
  const char* wanted = std::getenv("HEED_ISA");
  for (const Isa isa : fastest_first) {
    if (wanted ? name(isa) == wanted && supported(isa) : supported(isa)) return isa;
  }
  throw std::invalid_argument("HEED_ISA=" + std::string(wanted ? wanted : "") +
                              ": not an instruction set of this machine (scalar, neon, "
                              "sse2, avx2, avx512, avx512_bf16)");
}

/// The choice of this process; the only state of simd/.
inline Isa& chosen() {
  static Isa isa = choose();
  return isa;
}

}  // namespace detail

HEED_INLINE Isa active() { return detail::chosen(); }

HEED_INLINE void use(Isa isa) {
  if (!supported(isa)) {
    throw std::invalid_argument("simd::use: this machine cannot run " + std::string(name(isa)));
  }
  detail::chosen() = isa;
}

}  // namespace heed::simd

// The body of a function that returns the active set's `table<T>()`.
#if defined(__x86_64__)
#define HEED_SIMD_VECTOR_TABLES(table) \
  case Isa::sse2:                      \
    return sse2_kernels::table<T>();   \
  case Isa::avx2:                      \
    return avx2_kernels::table<T>();   \
  case Isa::avx512:                    \
  case Isa::avx512_bf16:               \
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
