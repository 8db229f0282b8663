// SPDX-License-Identifier: MIT
#include <vector>

#include <heed/tensor.hpp>

heed::RowMask<2> misuse() { return heed::Tensor<bool, 1>({3}); }
