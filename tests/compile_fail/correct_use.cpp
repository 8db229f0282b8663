// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>

struct Mine {
  bool allows(heed::Position) const { return true; }
};
heed::Tensor<float, 2> use(heed::Tensor<float, 2>& x) { return heed::attention(x, x, x, Mine{}); }
