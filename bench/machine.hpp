// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>

#include <heed/kernels/isa.hpp>

// What this machine can do, measured in the run it is compared with: absolute figures of a shared
// machine mean nothing an hour later.

namespace heed::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace detail {

#if defined(__x86_64__)
// Twelve independent chains: enough to hide the latency of two multiply-add units. Every loop over
// the sums is unrolled, or they would live in memory.
#define HEED_BENCH_FMA_LOOP(vector, instruction)                                        \
  vector sums[12];                                                                      \
  _Pragma("GCC unroll 12") for (int j = 0; j < 12; ++j) sums[j] = vector{} + 1.f;       \
  const vector factor = vector{} + 0.999f, term = vector{} + 0.001f;                    \
  for (long i = 0; i < rounds; ++i) {                                                   \
    _Pragma("GCC unroll 12") for (int j = 0; j < 12; ++j) {                             \
      asm volatile(instruction " %2, %1, %0" : "+v"(sums[j]) : "v"(factor), "v"(term)); \
    }                                                                                   \
  }                                                                                     \
  _Pragma("GCC unroll 12") for (int j = 1; j < 12; ++j) sums[0] += sums[j];             \
  return sums[0][0];

typedef float Floats16 __attribute__((vector_size(64)));
typedef float Floats8 __attribute__((vector_size(32)));

__attribute__((target("avx512f"), noinline)) inline float fma_avx512(long rounds) {
  HEED_BENCH_FMA_LOOP(Floats16, "vfmadd213ps")
}
__attribute__((target("avx2,fma"), noinline)) inline float fma_avx2(long rounds) {
  HEED_BENCH_FMA_LOOP(Floats8, "vfmadd213ps")
}
/// Products of bfloat16 pairs; the factors are floats, whose halves are bfloat16 too.
__attribute__((target("avx512f"), noinline)) inline float pairs_avx512(long rounds) {
  HEED_BENCH_FMA_LOOP(Floats16, "vdpbf16ps")
}
#undef HEED_BENCH_FMA_LOOP
#endif

}  // namespace detail

/// Multiply-adds of one thread at best, in GFLOP/s of float, for the active instruction set; 0
/// where that set has none. Registers only; a hundredth of a second.
inline double peak_gflops() {
#if defined(__x86_64__)
  const bool wide = simd::active() >= simd::Isa::avx512;
  if (!wide && simd::active() != simd::Isa::avx2) return 0;
  constexpr long rounds = 200000;
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const double start = seconds_now();
    volatile float sink = wide ? detail::fma_avx512(rounds) : detail::fma_avx2(rounds);
    static_cast<void>(sink);
    best = std::min(best, seconds_now() - start);
  }
  return 2.0 * 12 * (wide ? 16 : 8) * static_cast<double>(rounds) / best * 1e-9;
#else
  return 0;
#endif
}

/// The same for products of bfloat16 pairs, four operations to a pair; 0 where there are none.
inline double bfloat16_peak_gflops() {
#if defined(__x86_64__)
  if (simd::active() != simd::Isa::avx512_bf16) return 0;
  constexpr long rounds = 200000;
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const double start = seconds_now();
    volatile float sink = detail::pairs_avx512(rounds);
    static_cast<void>(sink);
    best = std::min(best, seconds_now() - start);
  }
  return 4.0 * 12 * 16 * static_cast<double>(rounds) / best * 1e-9;
#else
  return 0;
#endif
}

}  // namespace heed::bench
