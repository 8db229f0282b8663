// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>

void misuse(heed::Tensor<float, 5>& x) { heed::attention(x, x, x, heed::masks::Full{}, x); }
