// SPDX-License-Identifier: MIT
// The kernels of matrix products, layers and training behind heed::compiled.
#include <heed/kernels/layer_tables.inl>

namespace heed::simd {

template const ProductKernels<float>& product_kernels<float>();
template const ProductKernels<double>& product_kernels<double>();
template const Int16Kernels<float>& int16_kernels<float>();
template const Bfloat16ProductKernels<float>& bfloat16_product_kernels<float>();
template const RowKernels<float>& row_kernels<float>();
template const RowKernels<double>& row_kernels<double>();
template const NormKernels<float>& norm_kernels<float>();
template const NormKernels<double>& norm_kernels<double>();
template const TrainingKernels<float>& training_kernels<float>();
template const TrainingKernels<double>& training_kernels<double>();

}  // namespace heed::simd
