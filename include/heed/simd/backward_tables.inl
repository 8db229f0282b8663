// SPDX-License-Identifier: MIT
#pragma once

// The kernels of attention's backward pass, by instruction set.

#include <heed/simd/attention_tables.inl>
#include <heed/simd/backward_kernels.hpp>
#include <heed/simd/base.inl>
#include <heed/simd/head_gradient_kernels.hpp>

#define HEED_SIMD_PART 2
#include <heed/simd/each_isa.inl>

namespace heed::simd {
namespace detail {

template <class T>
const BackwardKernels<T>& backward_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, backward_table);
}
#if HEED_SIMD_ALL_KERNELS
template <class T>
const HeadGradientKernels<T>& head_gradient_kernels_of(Isa isa) {
  HEED_SIMD_TABLE_OF(isa, head_gradient_table);
}
#endif

}  // namespace detail

template <class T>
const BackwardKernels<T>& backward_kernels() {
  return detail::backward_kernels_of<T>(active());
}
#if HEED_SIMD_ALL_KERNELS
template <class T>
const HeadGradientKernels<T>& head_gradient_kernels() {
  return detail::head_gradient_kernels_of<T>(active());
}
#endif
#if defined(HEED_COMPILED_SOURCE)
template const BackwardKernels<float>& backward_kernels<float>();
template const BackwardKernels<double>& backward_kernels<double>();
template const HeadGradientKernels<float>& head_gradient_kernels<float>();
template const HeadGradientKernels<double>& head_gradient_kernels<double>();
#endif

}  // namespace heed::simd
