// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>

void misuse(heed::AttentionOptions<float>& options) {
  options.log_sum_exp = heed::Tensor<float, 2>({2, 3});
}
