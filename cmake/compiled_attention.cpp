// SPDX-License-Identifier: MIT
// The kernels of attention behind heed::compiled, but for those of its backward pass and of pairs.
#include <heed/kernels/attention_tables.inl>

namespace heed::simd {

template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();
template const DecodeKernels<float>& decode_kernels<float>();
template const DecodeKernels<double>& decode_kernels<double>();
template ShortForwardKernel<float> short_forward_kernel<float>();
template ShortForwardKernel<double> short_forward_kernel<double>();
template DropoutKernel dropout_kernel<double>();
template const Bfloat16Kernels<float>& bfloat16_kernels<float>();
template const Bfloat16Kernels<double>& bfloat16_kernels<double>();

}  // namespace heed::simd
