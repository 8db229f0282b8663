// SPDX-License-Identifier: MIT
#pragma once

// The kernels of attention, by instruction set.

#include <heed/simd/base.inl>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/dropout_kernels.hpp>
#include <heed/simd/head_run_kernels.hpp>

#define HEED_SIMD_PART 1
#include <heed/simd/each_isa.inl>

namespace heed::simd {
namespace detail {

template <class T>
const Kernels<T>& kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, table);
}
template <class T>
const DecodeKernels<T>& decode_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, decode_table);
}
#if HEED_SIMD_ALL_KERNELS
template <class T>
const HeadRunKernels<T>& head_run_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, head_run_table);
}
#endif
template <class T>
const DropoutKernels<T>& dropout_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, dropout_table);
}

}  // namespace detail

template <class T>
const Kernels<T>& kernels() {
  return detail::kernels_of<T>(active());
}
template <class T>
const DecodeKernels<T>& decode_kernels() {
  return detail::decode_kernels_of<T>(active());
}
#if HEED_SIMD_ALL_KERNELS
template <class T>
const HeadRunKernels<T>& head_run_kernels() {
  return detail::head_run_kernels_of<T>(active());
}
#endif
template <class T>
const DropoutKernels<T>& dropout_kernels() {
  return detail::dropout_kernels_of<T>(active());
}
#if defined(HEED_COMPILED_SOURCE)
template const DropoutKernels<double>& dropout_kernels<double>();
template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();
template const DecodeKernels<float>& decode_kernels<float>();
template const DecodeKernels<double>& decode_kernels<double>();
template const HeadRunKernels<float>& head_run_kernels<float>();
template const HeadRunKernels<double>& head_run_kernels<double>();
#endif

}  // namespace heed::simd
