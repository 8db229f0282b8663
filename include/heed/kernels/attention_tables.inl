// SPDX-License-Identifier: MIT
#pragma once

// The kernels of attention and its backward pass, by instruction set.

#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/base.inl>

#define HEED_SIMD_PART 1
#include <heed/kernels/each_isa.inl>

namespace heed::simd {

template <class T>
const Kernels<T>& kernels() {
  HEED_SIMD_TABLE_OF(active(), table);
}
template <class T>
const DecodeKernels<T>& decode_kernels() {
  HEED_SIMD_TABLE_OF(active(), decode_table);
}
template <class T>
ShortForwardKernel<T> short_forward_kernel() {
  HEED_SIMD_TABLE_OF(active(), short_forward);
}
template <class T>
DropoutKernel dropout_kernel() {
  HEED_SIMD_TABLE_OF(active(), dropout_draw);
}

}  // namespace heed::simd

// The kernels of the backward pass.

#define HEED_SIMD_PART 2
#include <heed/kernels/each_isa.inl>

namespace heed::simd {

template <class T>
const BackwardKernels<T>& backward_kernels() {
  HEED_SIMD_TABLE_OF(active(), backward_table);
}
#if HEED_SIMD_ALL_KERNELS
template <class T>
ShortBackwardKernel<T> short_backward_kernel() {
  HEED_SIMD_TABLE_OF(active(), short_backward);
}
#endif

}  // namespace heed::simd

// The kernels for bfloat16 tensors.

#define HEED_SIMD_PART 4
#include <heed/kernels/each_isa.inl>

namespace heed::simd {

template <class T>
const Bfloat16Kernels<T>& bfloat16_kernels() {
  HEED_SIMD_TABLE_OF(active(), bfloat16_table);
}
template <class T>
const PairKernels<T>* pair_kernels() {
#if defined(__x86_64__)
  if (active() == Isa::avx512_bf16) return avx512_kernels::pair_table<T>();
#endif
#if HEED_SIMD_HAS_TILES
  using namespace avx512_kernels;
  if (active() == Isa::amx) return tile_pair_table<HardwareTiles, T>();
  if (active() == Isa::amx_twin) return tile_pair_table<TwinTiles<T>, T>();
#endif
  return nullptr;
}
template <class T>
TileKernel<T> tile_kernel() {
#if HEED_SIMD_HAS_TILES
  using namespace avx512_kernels;
  if (active() == Isa::amx) return TileProduct<HardwareTiles, T>::once;
  if (active() == Isa::amx_twin) return TileProduct<TwinTiles<T>, T>::once;
#endif
  return nullptr;
}
template <class T>
PairBackwardKernel<T> pair_backward_kernel() {
#if defined(__x86_64__)
  using namespace avx512_kernels;
  if (active() == Isa::avx512_bf16) return PairBackwardTable<PairBlockProduct<T>, T>::backward;
#endif
#if HEED_SIMD_HAS_TILES
  if (active() == Isa::amx) return PairBackwardTable<TileProduct<HardwareTiles, T>, T>::backward;
  if (active() == Isa::amx_twin)
    return PairBackwardTable<TileProduct<TwinTiles<T>, T>, T>::backward;
#endif
  return nullptr;
}

}  // namespace heed::simd
