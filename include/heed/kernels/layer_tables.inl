// SPDX-License-Identifier: MIT
#pragma once

// The kernels of layers and training, by instruction set.

#include <heed/kernels/base.inl>
#include <heed/kernels/product_kernels.hpp>
#include <heed/kernels/row_kernels.hpp>

#define HEED_SIMD_PART 3
#include <heed/kernels/each_isa.inl>

namespace heed::simd {

// All tables of layers are templates, so that a program of attention alone is spared their compile
// time.
template <class T>
const ProductKernels<T>& product_kernels() {
  HEED_SIMD_TABLE_OF(active(), product_table);
}
template <class T>
const Int16Kernels<T>& int16_kernels() {
  const Isa isa = active();
#if defined(__x86_64__)
  using namespace avx512_kernels;
#if HEED_SIMD_HAS_TILES
  if (isa == Isa::amx) return tile_int16_table<HardwareTiles, T, true>();
  if (isa == Isa::amx_twin) return tile_int16_table<TwinTiles<T>, T, false>();
#endif
  // The instruction for integer pairs changes no bit: any processor's is used that has it. The
  // twin, which is for tests, does without.
  if (isa >= Isa::avx512 && __builtin_cpu_supports("avx512vnni")) return int16_table<T, true>();
#endif
  HEED_SIMD_TABLE_OF(isa, int16_table);
}
template <class T>
const Bfloat16ProductKernels<T>& bfloat16_product_kernels() {
  const Isa isa = active();
#if defined(__x86_64__)
  using namespace avx512_kernels;
  if (isa == Isa::avx512_bf16) return bfloat16_product_table<T, true>();
#if HEED_SIMD_HAS_TILES
  if (isa == Isa::amx) return tile_product_table<HardwareTiles, T>();
  if (isa == Isa::amx_twin) return tile_product_table<TwinTiles<T>, T>();
#endif
#endif
  HEED_SIMD_TABLE_OF(isa, bfloat16_product_table);
}
template <class T>
const RowKernels<T>& row_kernels() {
  HEED_SIMD_TABLE_OF(active(), row_table);
}
template <class T>
const NormKernels<T>& norm_kernels() {
  HEED_SIMD_TABLE_OF(active(), norm_table);
}
template <class T>
const TrainingKernels<T>& training_kernels() {
  HEED_SIMD_TABLE_OF(active(), training_table);
}

}  // namespace heed::simd
