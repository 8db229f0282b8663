// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/matrix_ref.hpp>

namespace heed::simd {

/// Queries are worked on in blocks of this many: one bit each in a 64-bit lane word.
inline constexpr Index query_block = 64;
/// Keys come in blocks that start at absolute multiples of this (a multiple of the tile's 6 rows).
inline constexpr Index key_block = 96;
/// Softmax sums are kept per chunk of this many keys and then merged in key order, so that a
/// decoder that splits its keys over threads at chunk borders gets the same bits.
inline constexpr Index key_chunk = 16 * key_block;

/// What happens to scores between the product and the mask, and to probabilities after the sums,
/// in units of log2. Arrays have a row per key of the block before any key was cut off its ends.
template <class T>
struct ScoreChange {
  bool given = false;  // QueryBlock::scores holds changed scores already
  T cap = 0;           // not 0: cap · tanh(score · ln(2) / 2), queries being packed for that
  const T* bias =
      nullptr;  // null, or added: element (key, lane) of a tile at key · bias_row + lane
  Index bias_row = 0;
  Index bias_tile = 0;                  // from one tile's bias to the next
  const std::uint64_t* keep = nullptr;  // null, or dropout: a bit for each weight that stays
  T keep_factor = 1;                    // and what it is multiplied by
};

/// Up to `key_block` consecutive keys with their values.
template <class T>
struct KeyBlock {
  MatrixRef<T> keys;    // (key, dim)
  MatrixRef<T> values;  // (key, value_dim)
  Index count = 0;
  const std::uint64_t* words = nullptr;    // lane word of each key; null: all queries see all keys
  bool guard_values = false;               // some value is NaN or Inf where a lane word has a 0
  const ScoreChange<T>* change = nullptr;  // null: plain scores
  Index cut = 0;  // keys cut off in front: rows of the arrays of `change` to pass over
};

/// Softmax in progress for one block of queries over some keys, in units of log2:
/// maximum m, sum l of 2^(s - m) and their value-weighted sum, `output`, transposed.
/// A lane that saw no key yet has m = lowest(), l = 0, output = 0.
template <class T>
struct SoftmaxState {
  T* maximum = nullptr;  // [lane]
  T* sum = nullptr;      // [lane]
  T* output = nullptr;   // [tile][value_dim][lane of tile]
};

/// A block of queries: its packed rows, its shape and the scratch its probabilities go to.
template <class T>
struct QueryBlock {
  const T* packed = nullptr;   // [tile][head_dim][lane of tile], scaled by scale · log2(e)
  T* probabilities = nullptr;  // [key_block][lane of tile], scratch
  T* scores = nullptr;         // [tile][key_block][lane of tile], scratch; for a ScoreChange only
  Index count = 0;             // queries, at most query_block
  Index head_dim = 0;
  Index value_dim = 0;
};

/// The instruction-set kernels of one set for one scalar type. Plain functions behind pointers:
/// nothing here depends on a user's type, so they compile once. All of them work lane by lane; no
/// result depends on which other lanes are computed with it.
template <class T>
struct Kernels {
  /// Queries in one tile; a block of query_block queries is query_block / tile_lanes tiles.
  Index tile_lanes;
  /// packed[tile][column][lane] = rows(lane, column) · factor; lanes past `count` repeat the last.
  void (*pack)(MatrixRef<T> rows, Index count, Index columns, T factor, T* packed);
  /// out(lane, column) = transposed[tile][column][lane] · factors[lane] + 0.
  void (*unpack)(const T* transposed, Index count, Index columns, const T* factors, T* out,
                 Index row_stride, Index column_stride);
  /// The changed scores of a block, to QueryBlock::scores, where a user's function may change them
  /// further before `attend` takes them as given.
  void (*scores)(const KeyBlock<T>& keys, const QueryBlock<T>& queries);
  /// Takes one block of keys into the softmax. `first`: the state is fresh and its output unset.
  void (*attend)(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                 const SoftmaxState<T>& state, bool first);
  /// probabilities[tile][key of key_block][lane] = 2^(s - maximum[lane]), 0 where masked.
  void (*probabilities)(const KeyBlock<T>& keys, const QueryBlock<T>& queries, T* maximum);
  /// total = total ⊕ part, the log-sum-exp merge of two sets of keys.
  void (*merge)(const SoftmaxState<T>& total, const SoftmaxState<T>& part, Index count,
                Index value_dim);
  /// Whether every element of `rows` × `columns` is finite.
  bool (*all_finite)(MatrixRef<T> matrix, Index rows, Index columns);
  /// out[i] = 2^in[i] by the kernels' own exponential; for weights and for measuring its error.
  void (*exp2)(const T* in, T* out, Index count);
};

/// The kernels of the active instruction set.
template <class T>
const Kernels<T>& kernels();

/// How many times 2^40 a block's sum may exceed the running maximum before it is moved
/// ("lazy maximum"): far below overflow, and harmless to accuracy, which is relative.
template <class T>
inline constexpr T lazy_limit = static_cast<T>(1099511627776.0);

}  // namespace heed::simd
