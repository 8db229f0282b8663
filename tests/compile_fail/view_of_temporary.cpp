// SPDX-License-Identifier: MIT
#include <heed/tensor.hpp>

heed::TensorView<const float, 2> misuse() { return heed::Tensor<float, 2>({2, 3}).view(); }
