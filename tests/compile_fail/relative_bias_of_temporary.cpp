// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>

void misuse(heed::AttentionOptions<float>& options, const heed::Tensor<float, 2>& table) {
  options.relative_bias = heed::relative_bias(table);
}
