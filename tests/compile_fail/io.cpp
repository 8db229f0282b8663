// SPDX-License-Identifier: MIT
#include <string>

#include <heed/io.hpp>
#include <heed/io/gguf.hpp>
#include <heed/layers.hpp>
#include <heed/plot.hpp>
#include <heed/training.hpp>

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

#ifdef NPY_WITHOUT_A_TYPE  // the type and the rank of a tensor are named: load_npy<float, 2>(path)
auto misuse() { return load_npy("x.npy"); }
#endif
#ifdef TENSOR_OF_A_FILE_WITHOUT_A_TYPE  // file.tensor<float, 2>(name)
auto misuse(const Safetensors& file) { return file.tensor("x"); }
#endif
#ifdef TENSOR_OF_GGUF_WITHOUT_A_TYPE  // file.tensor<float, 2>(name)
auto misuse(const Gguf& file) { return file.tensor("x"); }
#endif
#ifdef TENSOR_BEFORE_ITS_NAME  // the name goes first, and then the values: add(name, tensor)
void misuse(SafetensorsWriter& file, const Tensor<float, 1>& x) { file.add(x, "x"); }
#endif
#ifdef TENSOR_TO_THE_TERMINAL  // a picture is a Heatmap or a Chart: heatmap_of(matrix) makes one
auto misuse(const Tensor<float, 2>& weights) { return to_terminal(weights); }
#endif

#ifdef SAFETENSORS_OF_A_PATH  // heed::load_safetensors(path) reads a file
auto misuse() { return Safetensors("x.safetensors"); }
#endif
#ifdef SAFETENSORS_OF_A_STRING  // heed::load_safetensors(path) reads a file
void misuse(const std::string& path) { Safetensors file(path); }
#endif
#ifdef GGUF_OF_A_PATH  // heed::Gguf::open(path) reads a file
void misuse() { Gguf file("x.gguf"); }
#endif
#ifdef WRITER_OF_A_PATH  // add(name, tensor) collects tensors, and write(path) writes the file
void misuse() { SafetensorsWriter file("x.safetensors"); }
#endif

#ifdef BYTES_OF_A_TEMPORARY  // a temporary file dangle: give the file a name first
auto misuse() { return Gguf::open("x.gguf").bytes("x"); }
#endif

#ifdef NPY_BEFORE_ITS_PATH  // the path goes first, and then what is written or read
void misuse(const Tensor<float, 1>& x) { write_npy(x, "x.npy"); }
#endif
#ifdef WEIGHTS_BEFORE_THEIR_PATH  // the path goes first, and then what is written or read
void misuse(const Linear<float>& layer) { save_weights(layer, "x.safetensors"); }
#endif
#ifdef PICTURE_BEFORE_ITS_PATH  // the path goes first, and then what is written or read
void misuse(const Heatmap& heatmap) { write_svg(heatmap, "x.svg"); }
#endif
#ifdef PICTURE_OF_A_TENSOR  // a picture is a Heatmap or a Chart: heatmap_of(matrix) makes one
void misuse(const Tensor<float, 2>& weights) { write_svg("x.svg", weights); }
#endif
#ifdef PNG_OF_A_TENSOR  // a picture is a Heatmap or a Chart: heatmap_of(matrix) makes one
void misuse(const Tensor<float, 2>& weights) { write_png("x.png", weights); }
#endif
#ifdef PICTURE_OF_ALL_HEADS  // heatmaps_of(weights) makes one of each head
Heatmap misuse(const Tensor<float, 4>& weights) { return heatmap_of(weights); }
#endif
#ifdef PICTURES_OF_A_MATRIX  // heatmap_of(matrix) shows one matrix
auto misuse(const Tensor<float, 2>& weights) { return heatmaps_of(weights); }
#endif

void correct(SafetensorsWriter& file, const Tensor<float, 1>& x) {
  file.add("x", x, ElementType::bf16);
}
