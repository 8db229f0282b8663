// SPDX-License-Identifier: MIT
// A C face of the kernels for the scripts in this folder, which call other libraries on the same
// buffers in turn. Built as libheed_bench_peer.so.
#include <span>
#include <string_view>
#include <vector>

#include <heed/attention/backward.hpp>
#include <heed/attention/forward.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks.hpp>
#include <heed/tensor/matrix_product.hpp>

#include "../machine.hpp"

namespace {

using namespace heed;

/// What the next heed_forward runs under.
Mask chosen = masks::Full{};

Mask documents(Index size, Index keys) {
  std::vector<Index> offsets = {0};
  while (offsets.back() < keys) offsets.push_back(std::min(offsets.back() + size, keys));
  return masks::Causal{} & masks::Segments(offsets);
}

template <class T>
void forward_backward(const T* q, const T* k, const T* v, T* out, float* lse, const T* grad_out,
                      float* grad_q, float* grad_k, float* grad_v, Index batch, Index heads,
                      Index length, Index dim) {
  const Extents<4> extents{batch, heads, length, dim};
  const auto read = [&](const T* at) { return TensorView<const T, 4>(at, extents); };
  const auto write = [&](auto* at) { return TensorView(at, extents); };
  const TensorView<float, 3> rows(lse, {batch, heads, length});
  attention(read(q), read(k), read(v), chosen, write(out), {.log_sum_exp = rows});
  attention_backward(read(q), read(k), read(v), chosen, read(out), rows, read(grad_out),
                     write(grad_q), write(grad_k), write(grad_v));
}

}  // namespace

extern "C" {

double heed_peak() { return bench::peak_gflops(); }
double heed_bfloat16_peak() { return bench::bfloat16_peak_gflops(); }
const char* heed_isa() { return simd::name(simd::active()).data(); }
#if defined(__clang__)
const char* heed_compiler() { return "clang " __clang_version__; }
#else
const char* heed_compiler() { return "g++ " __VERSION__; }
#endif
void heed_threads(int count) { set_thread_count(count); }

/// Chooses the mask; `number` is its size where it has one, `bits` the matrix of "dense". False for
/// an unknown name.
bool heed_mask(const char* name, Index number, const bool* bits, Index queries, Index keys) {
  const std::string_view wanted = name;
  if (wanted == "none") {
    chosen = masks::Full{};
  } else if (wanted == "causal") {
    chosen = masks::Causal{};
  } else if (wanted == "lambda") {
    chosen = predicate([](Index query, Index key) { return key <= query; });
  } else if (wanted == "window") {
    chosen = masks::last_n(number);
  } else if (wanted == "prefix") {
    chosen = masks::Prefix(number);
  } else if (wanted == "documents") {
    chosen = documents(number, keys);
  } else if (wanted == "blocks") {
    chosen = masks::BlockSparse(queries / number, keys / number, number, [](Index row, Index key) {
      return row == key || (row * 7 + key * 3) % 13 == 0;
    });
  } else if (wanted == "dense") {
    chosen = masks::Dense(std::span<const bool>(bits, static_cast<std::size_t>(queries * keys)),
                          {1, 1, queries, keys});
  } else {
    return false;
  }
  return true;
}

/// Attention over contiguous (batch, heads, length, dim) float under the chosen mask.
void heed_forward(const float* q, const float* k, const float* v, float* out, Index batch,
                  Index heads, Index kv_heads, Index queries, Index keys, Index dim) {
  const TensorView<const float, 4> query_view(q, {batch, heads, queries, dim});
  const TensorView<const float, 4> key_view(k, {batch, kv_heads, keys, dim});
  const TensorView<const float, 4> value_view(v, {batch, kv_heads, keys, dim});
  const TensorView<float, 4> out_view(out, {batch, heads, queries, dim});
  attention(query_view, key_view, value_view, chosen, out_view);
}

/// The same over bfloat16, as bits.
void heed_forward_bfloat16(const bfloat16* q, const bfloat16* k, const bfloat16* v, bfloat16* out,
                           Index batch, Index heads, Index kv_heads, Index queries, Index keys,
                           Index dim) {
  const TensorView<const bfloat16, 4> query_view(q, {batch, heads, queries, dim});
  const TensorView<const bfloat16, 4> key_view(k, {batch, kv_heads, keys, dim});
  const TensorView<const bfloat16, 4> value_view(v, {batch, kv_heads, keys, dim});
  const TensorView<bfloat16, 4> out_view(out, {batch, heads, queries, dim});
  attention(query_view, key_view, value_view, chosen, out_view);
}

/// out = a · weightsᵀ for row-major float weights (columns, depth), as layers hold them.
void heed_linear(const float* a, const float* weights, float* out, Index rows, Index depth,
                 Index columns) {
  const TensorView<const float, 2> left(a, {rows, depth});
  const TensorView<const float, 2> right(weights, {depth, columns}, {1, depth});
  matrix_product(left, right, TensorView<float, 2>(out, {rows, columns}));
}

/// The same with weights packed once by heed_pack, which heed_free_packed gives back.
PackedMatrix<float>* heed_pack(const float* weights, Index depth, Index columns) {
  return new PackedMatrix<float>(TensorView<const float, 2>(weights, {depth, columns}, {1, depth}));
}
/// The same with bfloat16 weights, by which products round their rows to bfloat16 too.
PackedMatrix<float>* heed_pack_bfloat16(const bfloat16* weights, Index depth, Index columns) {
  const auto bytes = std::as_bytes(std::span(weights, static_cast<std::size_t>(depth * columns)));
  return new PackedMatrix<float>(
      PackedMatrix<float>::transposed_blocks<bfloat16>(bytes, depth, columns, Products::bfloat16));
}
void heed_free_packed(const PackedMatrix<float>* packed) { delete packed; }
void heed_linear_packed(const float* a, const PackedMatrix<float>* weights, float* out,
                        Index rows) {
  const TensorView<const float, 2> left(a, {rows, weights->rows()});
  matrix_product(left, *weights, TensorView<float, 2>(out, {rows, weights->columns()}));
}

/// Attention and its gradients over contiguous (batch, heads, length, dim) float, as many keys as
/// queries, under the chosen mask. `lse` has room for a number per query.
void heed_forward_backward(const float* q, const float* k, const float* v, float* out, float* lse,
                           const float* grad_out, float* grad_q, float* grad_k, float* grad_v,
                           Index batch, Index heads, Index length, Index dim) {
  forward_backward(q, k, v, out, lse, grad_out, grad_q, grad_k, grad_v, batch, heads, length, dim);
}

/// The same over bfloat16, as bits, with gradients in float.
void heed_forward_backward_bfloat16(const bfloat16* q, const bfloat16* k, const bfloat16* v,
                                    bfloat16* out, float* lse, const bfloat16* grad_out,
                                    float* grad_q, float* grad_k, float* grad_v, Index batch,
                                    Index heads, Index length, Index dim) {
  forward_backward(q, k, v, out, lse, grad_out, grad_q, grad_k, grad_v, batch, heads, length, dim);
}
}
