// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/matrix_ref.hpp>

namespace heed::simd {

/// Some heads of one batch item with few queries and few keys, whose queries see the same keys: one
/// call for all of them, since a head is over before a call would be worth it.
template <class T>
struct HeadRun {
  MatrixRef<T> queries;  // (query, dim) of the first head
  MatrixRef<T> keys;     // (key, dim) of the first head's key head
  MatrixRef<T> values;   // (key, value_dim)
  T* out = nullptr;      // (query, value_dim) of the first head
  Index query_head = 0;  // strides from one head to the next
  Index out_head = 0;
  Index key_head = 0;  // from one key head to the next
  Index value_head = 0;
  Index out_row = 0;  // strides of out
  Index out_column = 0;
  Index heads = 0;
  Index first_head = 0;   // head `first_head` + i reads key head (first_head + i) / sharing,
  Index sharing = 1;      // counted from that of first_head
  Index query_count = 0;  // at most query_block
  Index key_count = 0;    // at most key_block
  Index head_dim = 0;
  Index value_dim = 0;
  T query_factor = 0;                    // scale · log2(e)
  const std::uint64_t* words = nullptr;  // lane word of each key; null: all queries see all keys
  T* packed = nullptr;                   // [head_dim][a vector], scratch
  T* probabilities = nullptr;            // [key_block][a vector], scratch
  T* output = nullptr;                   // [value_dim][a vector], scratch
  T* tail = nullptr;                     // [key_block][a vector], scratch
  T* maximum = nullptr;      // [head][query_block]: as in SoftmaxState, for the log-sum-exp
  T* sum = nullptr;          // [head][query_block]
  bool from_memory = false;  // the call's tensors are more than caches hold
};

/// The kernels for short sequences of one instruction set for one scalar type. The same chains of
/// additions as in QueryBlock's kernels, so the same bits.
template <class T>
struct HeadRunKernels {
  /// Attention of all heads of the run, its output included.
  void (*attend)(const HeadRun<T>& run);
};

/// The kernels for short sequences of the active instruction set.
template <class T>
const HeadRunKernels<T>& head_run_kernels();

}  // namespace heed::simd

// Last, since its definitions are those of this header too.
#include <heed/simd/kernels.hpp>
