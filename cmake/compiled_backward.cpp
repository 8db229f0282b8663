// SPDX-License-Identifier: MIT
// The kernels of the backward pass of attention behind heed::compiled.
#include <heed/kernels/attention_tables.inl>

namespace heed::simd {

template const BackwardKernels<float>& backward_kernels<float>();
template const BackwardKernels<double>& backward_kernels<double>();
template ShortBackwardKernel<float> short_backward_kernel<float>();
template ShortBackwardKernel<double> short_backward_kernel<double>();

}  // namespace heed::simd
