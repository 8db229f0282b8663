// SPDX-License-Identifier: MIT
#pragma once

// The kernels of bfloat16, by instruction set.

#include <heed/simd/attention_tables.inl>
#include <heed/simd/base.inl>
#include <heed/simd/bfloat16_kernels.hpp>
#include <heed/simd/pair_kernels.hpp>

#define HEED_SIMD_PART 4
#include <heed/simd/each_isa.inl>

namespace heed::simd {
namespace detail {

template <class T>
const Bfloat16Kernels<T>& bfloat16_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, bfloat16_table);
}

}  // namespace detail

template <class T>
const Bfloat16Kernels<T>& bfloat16_kernels() {
  return detail::bfloat16_kernels_of<T>(active());
}
template <class T>
const PairKernels<T>* pair_kernels() {
#if defined(__x86_64__)
  if (active() == Isa::avx512_bf16) return avx512_kernels::pair_table<T>();
#endif
  return nullptr;
}
#if defined(HEED_COMPILED_SOURCE)
template const PairKernels<float>* pair_kernels<float>();
template const Bfloat16Kernels<float>& bfloat16_kernels<float>();
template const Bfloat16Kernels<double>& bfloat16_kernels<double>();
#endif

}  // namespace heed::simd
