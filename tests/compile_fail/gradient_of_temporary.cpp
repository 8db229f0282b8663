// SPDX-License-Identifier: MIT
#include <vector>

#include <heed/attention.hpp>

void misuse(heed::GradientOptions<float>& options) {
  options.grad_log_sum_exp = std::vector<float>(3);
}
