// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>

void misuse(heed::Tensor<float, 2>& x, heed::Tensor<double, 2>& keys) {
  heed::attention(x, keys, x, heed::masks::Full{}, x);
}
