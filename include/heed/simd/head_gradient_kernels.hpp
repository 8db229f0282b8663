// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/matrix_ref.hpp>

namespace heed::simd {

/// One head with few queries and few keys in the backward pass: one call for all of it. Columns of
/// all tensors lie side by side.
template <class T>
struct HeadGradient {
  MatrixRef<T> queries;      // (query, head_dim)
  MatrixRef<T> keys;         // (key, head_dim)
  MatrixRef<T> values;       // (key, value_dim)
  MatrixRef<T> output;       // (query, value_dim)
  MatrixRef<T> grad_output;  // likewise
  T* grad_queries = nullptr;
  T* grad_keys = nullptr;
  T* grad_values = nullptr;
  Index grad_query_row = 0;  // from one row to the next
  Index grad_key_row = 0;
  Index grad_value_row = 0;
  const T* log_sum_exp = nullptr;        // [query_block], in units of log2; 0 for who saw nothing
  const std::uint64_t* words = nullptr;  // a bit of each key for each query; null: all see all
  Index query_count = 0;                 // at most query_block
  Index key_count = 0;                   // at most key_block
  Index head_dim = 0;
  Index value_dim = 0;
  T query_factor = 0;  // scale · log2(e)
  T scale = 0;
  T* packed_queries = nullptr;   // [head_dim][a vector], scratch
  T* packed_gradient = nullptr;  // [value_dim][a vector], scratch
  T* probabilities = nullptr;    // [key_block][query_block], scratch
  T* grad_scores = nullptr;      // [key_block][query_block], scratch
  T* key_tail = nullptr;         // [key_block][a vector], scratch
  T* query_tail = nullptr;       // [query_block][a vector], scratch
  T* gradient_tail = nullptr;    // [query_block][a vector], scratch
};

/// The backward kernels for short sequences of one instruction set for one scalar type. The same
/// chains of additions as in BackwardKernels, so the same bits.
template <class T>
struct HeadGradientKernels {
  /// The gradients of one head. False, and nothing is written, where a NaN or an Inf stands beside
  /// masked scores, which it must not meet.
  bool (*backward)(const HeadGradient<T>& head);
};

/// The backward kernels for short sequences of the active instruction set.
template <class T>
const HeadGradientKernels<T>& head_gradient_kernels();

}  // namespace heed::simd

// Last, since its definitions are those of this header too.
#include <heed/simd/backward_kernels.hpp>
