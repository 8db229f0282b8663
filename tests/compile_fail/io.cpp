// SPDX-License-Identifier: MIT
#include <heed/io.hpp>
#include <heed/io/gguf.hpp>

using namespace heed;

#ifdef FILE_AS_INT16  // tensors are read and written as float, double, bfloat16, float16
Tensor<std::int16_t, 1> misuse(const Safetensors& file) {
  return file.tensor<std::int16_t, 1>("x");
}
#endif
#ifdef INT16_TO_FILE  // tensors are read and written as float, double, bfloat16, float16
void misuse(SafetensorsWriter& file, const Tensor<std::int16_t, 1>& x) { file.add("x", x); }
#endif
#ifdef GGUF_AS_INT  // weights are read as float, double, bfloat16 or float16
Tensor<int, 1> misuse(const Gguf& file) { return file.tensor<int, 1>("x"); }
#endif
#ifdef BFLOAT16_TO_NPY  // an .npy array is one of float, double, std::int32_t
void misuse(const Tensor<bfloat16, 1>& x) { write_npy("x.npy", x); }
#endif
#ifdef NPY_WITHOUT_A_RANK  // a tensor's rank is part of its type: name it behind the scalar type
auto misuse() { return load_npy<float>("x.npy"); }
#endif
#ifdef TENSOR_OF_A_FILE_WITHOUT_A_RANK  // as 2 for a matrix in load_npy<float, 2>(path)
auto misuse(const Safetensors& file) { return file.tensor<float>("x"); }
#endif
#ifdef TENSOR_OF_GGUF_WITHOUT_A_RANK  // or file.tensor<float, 2>(name)
auto misuse(const Gguf& file) { return file.tensor<float>("x"); }
#endif

void correct(SafetensorsWriter& file, const Tensor<float, 1>& x) {
  file.add("x", x, ElementType::bf16);
}
