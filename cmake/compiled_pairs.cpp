// SPDX-License-Identifier: MIT
// The kernels of attention on pairs and tiles of bfloat16 behind heed::compiled.
#include <heed/kernels/attention_tables.inl>

namespace heed::simd {

template const PairKernels<float>* pair_kernels<float>();
template PairBackwardKernel<float> pair_backward_kernel<float>();
template TileKernel<float> tile_kernel<float>();

}  // namespace heed::simd
