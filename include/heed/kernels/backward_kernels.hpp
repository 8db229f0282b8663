// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/matrix_ref.hpp>

namespace heed::simd {

template <class T>
struct MatrixRef;
/// A block of at most query_block queries in the backward pass: its rows, to be multiplied lane by
/// lane, and the same rows transposed, with a lane per query. Transposed rows are query_block lanes
/// long; lanes past `count` are computed and not used.
template <class T>
struct BackwardQueries {
  const T* queries = nullptr;          // [query][head_dim, padded by zeros to row_lanes]
  const T* grad_output = nullptr;      // [query][value_dim, padded likewise]
  const T* packed_queries = nullptr;   // [tile][head_dim][lane of tile], in the kernels' units
  const T* packed_gradient = nullptr;  // [tile][value_dim][lane of tile], of the output
  const T* log_sum_exp = nullptr;      // [lane], in units of log2
  const T* delta = nullptr;            // [lane], Σ_d grad_output · output − grad_log_sum_exp
  T* probabilities = nullptr;          // [key_block][lane], scratch
  T* grad_scores = nullptr;            // [key_block][lane], scratch
  T* grad_queries = nullptr;           // [head_dim][lane], added to; not yet times scale
  Index count = 0;
  Index head_dim = 0;
  Index value_dim = 0;
  bool guard_rows = false;     // some query or grad_output is NaN or Inf
  const T* scores = nullptr;   // [tile][key_block][lane of tile], where a ScoreModArrays is given
  const T* slopes = nullptr;   // likewise: the derivatives of a score function
  bool after_softcap = false;  // grad_scores are for the softcapped scores
};

/// The gradients of a block of keys and of their values, added to; keys not yet times scale.
template <class T>
struct KeyGradients {
  T* keys = nullptr;    // [key][head_dim, padded by zeros to row_lanes]
  T* values = nullptr;  // [key][value_dim, padded likewise]
};

/// The backward kernels of one instruction set for one scalar type; like Kernels, and separate from
/// it so that programs without training do not compile them.
template <class T>
struct BackwardKernels {
  /// Rows that are read beside lanes are padded to a multiple of this.
  Index row_lanes;
  /// rows[lane][column, padded to `row_stride`] = packed[column][lane] · factor + 0.
  void (*unpack)(const T* packed, Index count, Index columns, T factor, T* rows, Index row_stride);
  /// out[row] = Σ_column a[row][column] · b[row][column]; rows padded, `row_stride` apart.
  void (*row_dots)(const T* a, const T* b, Index row_stride, Index rows, T* out);
  /// out(row, column) = from[row][column] · factor + (out(row, column) if `accumulate`, else 0).
  void (*put_rows)(const T* from, Index from_stride, Index rows, Index columns, T factor,
                   bool accumulate, T* out, Index row_stride, Index column_stride);
  /// Computes probabilities and score gradients, 0 where masked.
  void (*grad_scores)(const KeyBlock<T>& keys, const BackwardQueries<T>& queries);
  /// Adds the contributions of one block of queries and one block of keys to the gradients of
  /// queries, keys and values. `guard_keys`: a key is NaN or Inf where a lane word has a 0.
  void (*backward)(const KeyBlock<T>& keys, const BackwardQueries<T>& queries,
                   const KeyGradients<T>& gradients, bool guard_keys);
};

/// The backward kernels of the active instruction set.
template <class T>
const BackwardKernels<T>& backward_kernels();

/// A block of query_block queries and one of key_block keys in bfloat16, both filled up with zeros:
/// an operand of PairBackwardKernels. `head_depth` and `value_depth` are the dims in whole groups
/// of 32, `head_row` and `value_row` in whole vectors.
template <class T>
struct PairGradientBlock {
  const std::uint16_t* packed_queries = nullptr;  // PairKernels::pack of [query][head_depth]
  const std::uint16_t* packed_gradient =
      nullptr;                                    // likewise of [query][value_depth], of the output
  const std::uint16_t* zipped_queries = nullptr;  // PairKernels::zip of [query][head_row]
  const std::uint16_t* zipped_gradient = nullptr;  // likewise of [query][value_row]
  MatrixRef<std::uint16_t> keys;                   // (key, head_depth), column_stride 1
  MatrixRef<std::uint16_t> values;                 // (key, value_depth), likewise
  const std::uint16_t* turned_keys = nullptr;      // PairKernels::turn of [key][head_row]
  const T* log_sum_exp = nullptr;                  // as in BackwardQueries
  const T* delta = nullptr;
  T* scores = nullptr;                          // [key][lane], scratch, like all that follow
  T* grad_weights = nullptr;                    // [key][lane]
  std::uint16_t* probabilities = nullptr;       // [key][lane]
  std::uint16_t* grad_scores = nullptr;         // [key][lane]
  std::uint16_t* paired_grad_scores = nullptr;  // [key / 2][lane][2]
  T* grad_queries = nullptr;                    // [head_row][lane], added to; not yet times scale
  T factor = 0;                                 // scores times this are in units of log2
  Index head_depth = 0;
  Index value_depth = 0;
  Index head_row = 0;
  Index value_row = 0;
  const std::uint64_t* words = nullptr;  // lane word per key; null: all queries see all keys
  KeyGradients<T> gradients;             // added to
};

/// The backward kernels of a processor that multiplies bfloat16 in pairs or tiles. Its PairKernels
/// arrange the operands.
template <class T>
struct PairBackwardKernels {
  /// Like BackwardKernels::backward. P and dS are rounded to bfloat16.
  void (*backward)(const PairGradientBlock<T>& block);
};

/// Those of the active instruction set; null if it has none.
template <class T>
const PairBackwardKernels<T>* pair_backward_kernels();

/// One head with few queries and few keys in the backward pass, computed in one call. Columns of
/// all tensors are contiguous.
template <class T>
struct ShortBackwardArgs {
  MatrixRef<T> queries;      // (query, head_dim)
  MatrixRef<T> keys;         // (key, head_dim)
  MatrixRef<T> values;       // (key, value_dim)
  MatrixRef<T> output;       // (query, value_dim)
  MatrixRef<T> grad_output;  // likewise
  T* grad_queries = nullptr;
  T* grad_keys = nullptr;
  T* grad_values = nullptr;
  Index grad_query_row = 0;  // stride between rows
  Index grad_key_row = 0;
  Index grad_value_row = 0;
  const T* log_sum_exp = nullptr;        // [query_block], in units of log2; 0: saw no key
  const std::uint64_t* words = nullptr;  // per query, one bit per key; null: all see all
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

/// The backward kernels for short sequences of one instruction set for one scalar type. The chains
/// of additions are those of BackwardKernels, so the bits are the same.
template <class T>
struct ShortBackwardKernels {
  /// Computes the gradients of one head. Returns false, and writes nothing, where a NaN or Inf is
  /// next to masked scores, which it must not meet.
  bool (*backward)(const ShortBackwardArgs<T>& head);
};

/// The backward kernels for short sequences of the active instruction set.
template <class T>
const ShortBackwardKernels<T>& short_backward_kernels();

}  // namespace heed::simd
