// SPDX-License-Identifier: MIT
// Compiles one part of the kernels, HEED_SIMD_PART of part.inl, for every instruction set of this
// architecture, each in its own target region: a plain -O2 build holds all sets. Included once per
// part; a program compiles the parts it uses.

// A part of the kernels that call it, always inlined: it is compiled for their set.
#define HEED_SIMD inline __attribute__((always_inline))
// A function of its own, which a table may point to.
#define HEED_KERNEL __attribute__((noinline))
#define HEED_LAMBDA __attribute__((always_inline))  // behind a lambda's parameters
// A long part of several kernels, once a block of keys or less: heed::compiled has it in each of
// them; header-only programs have a function, which saves compile time.
#if HEED_SIMD_ALL_KERNELS
#define HEED_SHARED HEED_SIMD
#else
#define HEED_SHARED HEED_KERNEL
#endif
#define HEED_UNROLL _Pragma("GCC unroll 64")
// clang 22 has no builtins of x86 where there is one of all processors; those came with clang 17.
#if defined(__clang__)
#define HEED_CLANG_HAS(builtin) __has_builtin(builtin)
#else
#define HEED_CLANG_HAS(builtin) 0
#endif
// Returns the x86 builtin named by its operation and what follows ps or pd, by the type Float.
#define HEED_RETURN_X86(operation, suffix, ...)                 \
  if constexpr (sizeof(Float) == 4)                             \
    return __builtin_ia32_##operation##ps##suffix(__VA_ARGS__); \
  else                                                          \
    return __builtin_ia32_##operation##pd##suffix(__VA_ARGS__)

// Units built with other flags have kernels of their own, so that the linker never gives one unit
// the machine code of another.
#if defined(__AVX512F__)
#define HEED_FLAGS_TAG built_for_avx512
#elif defined(__AVX2__)
#define HEED_FLAGS_TAG built_for_avx2
#else
#define HEED_FLAGS_TAG built_for_baseline
#endif

// Bits are decided by explicit fused multiply-adds; the compiler must not fuse others on its own,
// nor reorder sums where the program is built with a part of -ffast-math.
// g++ optimizes kernels in every build type: -O0 would make them forty times slower.
#if defined(__clang__)
#if defined(__x86_64__)  // clang does not know it elsewhere
#pragma float_control(precise, on, push)
#endif
#pragma clang fp contract(off) reassociate(off)
#else
#pragma GCC push_options
#pragma GCC optimize("O2", "no-fast-math", "fp-contract=off")
// These passes cost a fifth of a program's compile time, and bring a few percent in loops that are
// written as vectors: heed::compiled has them, except in the sets that are a last resort.
#pragma GCC push_options
#pragma GCC optimize("no-thread-jumps", "no-tree-vrp", "no-gcse", "no-tree-dominator-opts")
#pragma GCC optimize("no-schedule-insns2", "no-tree-pre", "no-tree-ccp")
#pragma GCC optimize("no-tree-slp-vectorize", "no-tree-loop-vectorize")
#if HEED_SIMD_PART <= 1  // the base and the forward pass, for which it was measured
HEED_FEWER_PASSES
#endif
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

namespace heed::simd {
inline namespace HEED_FLAGS_TAG {

#if HEED_SIMD_HAS_SCALAR
#define HEED_SIMD_NAMESPACE scalar_kernels
#define HEED_SIMD_BYTES 0
#define HEED_SIMD_VECTORS 2
#include <heed/kernels/part.inl>
#endif

#if defined(__x86_64__)
// A last resort in header-only programs, which may be slow.
#if !defined(__clang__) && !HEED_SIMD_ALL_KERNELS
#pragma GCC push_options
#pragma GCC optimize("O1")
#endif
#define HEED_SIMD_NAMESPACE sse2_kernels
#define HEED_SIMD_BYTES 16
#define HEED_SIMD_VECTORS 2
#include <heed/kernels/part.inl>
#if !defined(__clang__) && !HEED_SIMD_ALL_KERNELS
#pragma GCC pop_options
#endif
#endif

#if HEED_SIMD_ALL_KERNELS && !defined(__clang__)
#pragma GCC pop_options
#pragma GCC push_options
#endif

#if defined(__aarch64__)
#define HEED_SIMD_NAMESPACE neon_kernels
#define HEED_SIMD_BYTES 16
#define HEED_SIMD_VECTORS 4
#include <heed/kernels/part.inl>
#endif

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define HEED_SIMD_NAMESPACE avx2_kernels
#define HEED_SIMD_BYTES 32
#define HEED_SIMD_VECTORS 2
#include <heed/kernels/part.inl>
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
#include <heed/kernels/part.inl>
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
#if defined(__x86_64__)
#pragma float_control(pop)
#endif
#else
#pragma GCC pop_options
#pragma GCC pop_options
#endif

#undef HEED_SIMD
#undef HEED_KERNEL
#undef HEED_LAMBDA
#undef HEED_SHARED
#undef HEED_UNROLL
#undef HEED_RETURN_X86
#undef HEED_CLANG_HAS
#undef HEED_FLAGS_TAG
#undef HEED_SIMD_PART
