// SPDX-License-Identifier: MIT
#include <heed/io.hpp>

using namespace heed;

#ifdef FILE_AS_BFLOAT16  // tensors are read and written as float, double, std::int64_t
Tensor<bfloat16, 1> misuse(const Safetensors& file) { return file.tensor<bfloat16, 1>("x"); }
#endif
#ifdef BFLOAT16_TO_FILE  // tensors are read and written as float, double, std::int64_t
void misuse(SafetensorsWriter& file, const Tensor<bfloat16, 1>& x) { file.add("x", x); }
#endif
#ifdef BFLOAT16_TO_NPY  // an .npy array is one of float, double, std::int32_t
void misuse(const Tensor<bfloat16, 1>& x) { write_npy("x.npy", x); }
#endif

void correct(SafetensorsWriter& file, const Tensor<float, 1>& x) {
  file.add("x", x, ElementType::bf16);
}
