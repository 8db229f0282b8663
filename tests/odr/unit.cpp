// SPDX-License-Identifier: MIT
#include <cstring>
#include <string_view>

#include <heed/attention.hpp>
#include <heed/tensor/rows.hpp>

#define HEED_CONCAT(a, b) a##b
#define HEED_NAME(a, b) HEED_CONCAT(a, b)

/// Attention, weights and a softmax of fixed numbers on one instruction set; how many floats were
/// written, 0 when the machine cannot run the set.
int HEED_NAME(compute_, HEED_UNIT)(const char* wanted, float* results) {
  using namespace heed;
  for (const auto isa :
       {simd::Isa::scalar, simd::Isa::neon, simd::Isa::sse2, simd::Isa::avx2, simd::Isa::avx512}) {
    if (simd::name(isa) != std::string_view(wanted)) continue;
    if (!simd::supported(isa)) return 0;
    simd::use(isa);
  }
  Tensor<float, 3> tokens({2, 150, 13});
  unsigned state = 1;
  for (float& value : tokens) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-22f - 2.f;
  }
  const auto out = attention(tokens, tokens, tokens, masks::Causal{} & masks::last_n(70));
  const auto weights = attention_weights(tokens, tokens, masks::Causal{});
  Tensor<float, 3> rows(out.extents());
  softmax(out, rows);
  int count = 0;
  const Tensor<float, 3>* const tensors[] = {&out, &weights, &rows};
  for (const auto* tensor : tensors) {
    const auto size = static_cast<std::size_t>(tensor->size());
    std::memcpy(results + count, tensor->data(), size * sizeof(float));
    count += static_cast<int>(size);
  }
  return count;
}
