// SPDX-License-Identifier: MIT
#include <vector>

#include <heed/tensor.hpp>

using namespace heed;

#ifdef NESTED_VECTORS  // a vector of vectors is no tensor: flatten it
void misuse(std::vector<std::vector<float>>& rows) { TensorView view(rows, {2, 3}); }
#endif

float correct(const std::vector<float>& values) { return TensorView(values, {2, 3})(1, 2); }
