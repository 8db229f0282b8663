// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>

void misuse(heed::AttentionOptions<float>& options) {
  options.bias = heed::Tensor<float, 2>({2, 3});
}
