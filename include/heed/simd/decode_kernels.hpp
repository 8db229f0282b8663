// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>

namespace heed::simd {

template <class T>
struct KeyBlock;

/// Keys of a block that rows of scores have room for: key_block, rounded up to whole tiles.
inline constexpr Index row_keys = 128;

/// A few rows of queries meeting one block of keys, lanes being keys: for decoding, where a block
/// of queries would leave its lanes empty. The same chains of additions as in QueryBlock's kernels,
/// so the same bits. In a ScoreChange, `bias` and `keep` are (row, key) here.
template <class T>
struct QueryRows {
  const T* rows = nullptr;                 // [row][head_dim], scaled as packed queries are
  T* packed = nullptr;                     // [tile of keys][head_dim][lane], scratch
  T* scores = nullptr;                     // [tile of keys][row][lane], scratch
  T* probabilities = nullptr;              // [row][row_keys], scratch
  T* tail = nullptr;                       // [key_block][a vector], scratch
  T* maximum = nullptr;                    // [row], as in SoftmaxState
  T* sum = nullptr;                        // [row]
  T* output = nullptr;                     // [row][output_stride], from zeros on
  Index output_stride = 0;                 // value_dim, rounded up to a multiple of 16
  const std::uint64_t* visible = nullptr;  // [row][2]: a bit per key; null: all are seen
  Index count = 0;
  Index head_dim = 0;
  Index value_dim = 0;
  const T* next_keys = nullptr;  // where the block after this one begins, if that is known
};

/// The decoding kernels of one instruction set for one scalar type.
template <class T>
struct DecodeKernels {
  // Both are null where few queries are computed as many are, with the same bits.
  /// rows.scores of a block of keys, changed by its ScoreChange.
  void (*scores)(const KeyBlock<T>& keys, const QueryRows<T>& rows);
  /// Takes the block of keys, whose scores stand in rows.scores, into the softmax.
  /// Values have column_stride 1.
  void (*attend)(const KeyBlock<T>& keys, const QueryRows<T>& rows);
};

/// The decoding kernels of the active instruction set.
template <class T>
const DecodeKernels<T>& decode_kernels();

}  // namespace heed::simd

// Last, since its definitions are those of this header too.
#include <heed/simd/kernels.hpp>
