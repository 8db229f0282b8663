// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/simd/matrix_ref.hpp>

namespace heed::simd {

/// Up to `key_block` consecutive keys with their values, in bfloat16, from an even position on.
struct PairKeys {
  MatrixRef<std::uint16_t> keys;          // (key, dim), column_stride 1, an even number of columns
  const std::uint16_t* values = nullptr;  // [key / 2][value_dim][2], a vector's room behind it
  Index count = 0;
  const std::uint64_t* words = nullptr;  // lane word of each key; null: all queries see all keys
  bool guard_values = false;             // some value is NaN or Inf where a lane word has a 0
};

/// A block of queries and the scratch its scores go to, for sums of type T.
template <class T>
struct PairQueries {
  const std::uint16_t* packed = nullptr;  // [tile][head_dim / 2][lane of tile][2]
  T* scores = nullptr;                    // [key_block][lane of tile], scratch
  T factor = 0;                           // scores times this are in units of log2
  Index count = 0;
  Index head_dim = 0;
  Index value_dim = 0;
};

/// A few rows of queries meeting a block of keys, as QueryRows.
template <class T>
struct PairRows {
  const std::uint16_t* rows = nullptr;     // [row][2 · depth], zeros behind head_dim
  std::uint16_t* packed = nullptr;         // [tile of keys][depth][lane][2], scratch
  T* scores = nullptr;                     // [tile of keys][row][lane], scratch
  std::uint16_t* probabilities = nullptr;  // [row][row_keys], scratch
  T* maximum = nullptr;                    // [row], as in SoftmaxState
  T* sum = nullptr;                        // [row]
  T* output = nullptr;                     // [row][output_stride], from zeros on
  Index output_stride = 0;                 // value_dim, rounded up to a multiple of 16
  const std::uint64_t* visible = nullptr;  // [row][2]: a bit per key; null: all are seen
  T factor = 0;
  Index count = 0;
  Index head_dim = 0;
  Index depth = 0;  // pairs of head_dim
  Index value_dim = 0;
};

/// The kernels of a processor that multiplies bfloat16 in pairs and sums in T = float. Scores are
/// exact products summed in float, weights are rounded to bfloat16. Queries and keys are attended
/// to in tiles of Kernels<T>::tile_lanes, and states are those of Kernels<T>.
template <class T>
struct PairKernels {
  /// packed[tile][column / 2][lane][column % 2] = rows(lane, column), an odd last column beside
  /// zeros; lanes past `count` repeat the last.
  void (*pack)(MatrixRef<std::uint16_t> rows, Index count, Index columns, std::uint16_t* packed);
  /// pairs[row / 2][column][row % 2] = rows(row, column), an odd last row beside zeros.
  void (*zip)(MatrixRef<std::uint16_t> rows, Index count, Index columns, std::uint16_t* pairs);
  /// Whether there is no NaN and no infinity.
  bool (*all_finite)(const std::uint16_t* values, Index count);
  /// As Kernels::attend.
  void (*attend)(const PairKeys& keys, const PairQueries<T>& queries, const SoftmaxState<T>& state,
                 bool first);
  /// As DecodeKernels::scores and attend; of `keys` what is in PairRows as bits is not in words.
  void (*decode)(const PairKeys& keys, const PairRows<T>& rows);
};

/// The pair kernels of the active instruction set; null where it has none.
template <class T>
const PairKernels<T>* pair_kernels();

}  // namespace heed::simd
