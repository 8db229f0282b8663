// SPDX-License-Identifier: MIT
#pragma once

// The kernels for every instruction set of this architecture, and the choice among them at run
// time. A plain -O2 build holds all of them: each set is compiled in its own target region.

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <heed/simd/backward_kernels.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/isa.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/simd/product_kernels.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/simd/training_kernels.hpp>

#define HEED_SIMD inline __attribute__((always_inline))
#define HEED_KERNEL __attribute__((noinline))
#define HEED_UNROLL _Pragma("GCC unroll 64")

// Units built with other flags keep kernels of their own, so that the linker never hands one
// unit's machine code to the other.
#if defined(__AVX512F__)
#define HEED_FLAGS_TAG built_for_avx512
#elif defined(__AVX2__)
#define HEED_FLAGS_TAG built_for_avx2
#else
#define HEED_FLAGS_TAG built_for_baseline
#endif

// Bits are decided by explicit fused multiply-adds; the compiler must not fuse others on its own.
#if defined(__clang__)
#pragma float_control(push)
#pragma clang fp contract(off)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

namespace heed::simd {
inline namespace HEED_FLAGS_TAG {

// The scalar set is for machines without another one, and for checking the others: heed::compiled
// has it everywhere, header-only units on x86 and AArch64 are spared its compile time.
#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(HEED_COMPILED_SOURCE)
#define HEED_SIMD_HAS_SCALAR 1
#define HEED_SIMD_NAMESPACE scalar_kernels
#define HEED_SIMD_BYTES 0
#define HEED_SIMD_VECTORS 4
#include <heed/simd/kernels.inl>
#else
#define HEED_SIMD_HAS_SCALAR 0
#endif

#if defined(__aarch64__)
#define HEED_SIMD_NAMESPACE neon_kernels
#define HEED_SIMD_BYTES 16
#define HEED_SIMD_VECTORS 4
#include <heed/simd/kernels.inl>
#endif

#if defined(__x86_64__)
#define HEED_SIMD_NAMESPACE sse2_kernels
#define HEED_SIMD_BYTES 16
#define HEED_SIMD_VECTORS 2
#include <heed/simd/kernels.inl>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define HEED_SIMD_NAMESPACE avx2_kernels
#define HEED_SIMD_BYTES 32
#define HEED_SIMD_VECTORS 2
#include <heed/simd/kernels.inl>
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#endif
#define HEED_SIMD_NAMESPACE avx512_kernels
#define HEED_SIMD_BYTES 64
#define HEED_SIMD_VECTORS 4
#include <heed/simd/kernels.inl>
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif  // __x86_64__

}  // namespace HEED_FLAGS_TAG
}  // namespace heed::simd

#pragma GCC diagnostic pop
#if defined(__clang__)
#pragma float_control(pop)
#else
#pragma GCC pop_options
#endif

namespace heed::simd {

HEED_INLINE std::string_view name(Isa isa) {
  constexpr std::string_view names[] = {"scalar", "neon", "sse2", "avx2", "avx512"};
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
    default:
      break;
  }
#endif
  return false;
}

namespace detail {

/// The best supported set, or the one that HEED_ISA asks for.
inline Isa choose() {
  constexpr Isa fastest_first[] = {Isa::avx512, Isa::avx2, Isa::sse2, Isa::neon, Isa::scalar};
  const char* wanted = std::getenv("HEED_ISA");
  for (const Isa isa : fastest_first) {
    if (wanted ? name(isa) == wanted && supported(isa) : supported(isa)) return isa;
  }
  throw std::invalid_argument("HEED_ISA=" + std::string(wanted ? wanted : "") +
                              ": not an instruction set of this machine (scalar, neon, "
                              "sse2, avx2, avx512)");
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

#include <heed/simd/attention_tables.inl>
#include <heed/simd/layer_tables.inl>

#undef HEED_SIMD_VECTOR_TABLES
#undef HEED_SIMD_SCALAR_TABLE
#undef HEED_SIMD_TABLE_OF
#undef HEED_SIMD
#undef HEED_SIMD_HAS_SCALAR
#undef HEED_KERNEL
#undef HEED_UNROLL
#undef HEED_FLAGS_TAG
