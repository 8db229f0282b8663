// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <heed/core/detail/scratch.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

template <class T>
struct AttentionArgs;

/// One thread's arrays for one block of queries.
template <class T>
struct ForwardScratch {
  /// `score_mods`: with room for a ScoreModArrays.
  ForwardScratch(Carver carver, Index head_dim, Index value_dim, bool score_mods)
      : packed(carver.take<T>(simd::query_block * head_dim)),
        probabilities(carver.take<T>(simd::query_block * simd::key_block)),
        total{carver.take<T>(simd::query_block), carver.take<T>(simd::query_block),
              carver.take<T>(simd::query_block * value_dim)},
        chunk{carver.take<T>(simd::query_block), carver.take<T>(simd::query_block),
              carver.take<T>(simd::query_block * value_dim)},
        factors(carver.take<T>(simd::query_block)),
        keys(carver.take<T>(simd::key_block * head_dim)),
        values(carver.take<T>(simd::key_block * value_dim)),
        words(carver.take<std::uint64_t>(simd::key_block)),
        kept(carver.take<Index>(simd::key_block)),
        scores(carver.take<T>(score_mods ? simd::query_block * simd::key_block : 0)),
        bias(carver.take<T>(score_mods ? simd::query_block * simd::key_block : 0)),
        keep(carver.take<std::uint64_t>(score_mods ? simd::key_block : 0)),
        bytes(carver.used()) {}

  static ForwardScratch of_this_thread(Index head_dim, Index value_dim, bool score_mods = false) {
    const ForwardScratch sizes(Carver(nullptr), head_dim, value_dim, score_mods);
    return {Carver(Scratch::of_this_thread(sizes.bytes)), head_dim, value_dim, score_mods};
  }

  T* packed;
  T* probabilities;
  simd::SoftmaxState<T> total;
  simd::SoftmaxState<T> chunk;
  T* factors;
  T* keys;
  T* values;
  std::uint64_t* words;
  Index* kept;
  T* scores;
  T* bias;
  std::uint64_t* keep;
  std::size_t bytes;
};

/// The maximum number of query rows decoded together: heads that share a key head, times queries.
inline constexpr Index decode_rows = 64;

/// The value_dim of decoded outputs: padded to whole vectors of any instruction set.
inline Index padded_value_dim(Index value_dim) { return (value_dim + 15) / 16 * 16; }

/// One thread's arrays for some rows of queries and one block of keys.
template <class T>
struct DecodeScratch {
  DecodeScratch(Carver carver, Index row_count, Index head_dim, Index value_dim, bool score_mods)
      : rows(carver.take<T>(row_count * head_dim)),
        packed(carver.take<T>(simd::row_keys * head_dim)),
        scores(carver.take<T>(simd::row_keys * row_count)),
        probabilities(carver.take<T>(simd::row_keys * row_count)),
        tail(carver.take<T>(simd::key_block * 16 + 16 * head_dim)),
        keys(carver.take<T>(simd::key_block * head_dim)),
        values(carver.take<T>(simd::key_block * value_dim)),
        words(carver.take<std::uint64_t>(simd::key_block)),
        visible(carver.take<std::uint64_t>(2 * row_count)),
        kept(carver.take<Index>(simd::key_block)),
        bias(carver.take<T>(score_mods ? simd::row_keys * row_count : 0)),
        keep(carver.take<std::uint64_t>(score_mods ? 2 * row_count : 0)),
        bytes(carver.used()) {}

  static DecodeScratch of_this_thread(Index row_count, Index head_dim, Index value_dim,
                                      bool score_mods) {
    const DecodeScratch sizes(Carver(nullptr), row_count, head_dim, value_dim, score_mods);
    return {Carver(Scratch::of_this_thread(sizes.bytes)), row_count, head_dim, value_dim,
            score_mods};
  }

  T* rows;
  T* packed;
  T* scores;
  T* probabilities;
  T* tail;
  T* keys;
  T* values;
  std::uint64_t* words;
  std::uint64_t* visible;
  Index* kept;
  T* bias;
  std::uint64_t* keep;
  std::size_t bytes;
};

/// The softmax states of some rows of queries over some keys, row by row, as in decoding.
template <class T>
struct RowStates {
  T* maximum = nullptr;  // [row]
  T* sum = nullptr;      // [row]
  T* output = nullptr;   // [row][padded_value_dim]

  /// The states of the rows from `row` on.
  RowStates from(Index row, Index value_dim) const {
    return {maximum + row, sum + row, output + row * padded_value_dim(value_dim)};
  }
  /// The states of `rows` rows in one piece of memory, of `size` numbers.
  static RowStates in(T* memory, Index rows, Index value_dim) {
    T* const behind = memory + rows * padded_value_dim(value_dim);
    return {behind, behind + rows, memory};
  }
  static Index size(Index rows, Index value_dim) {
    return rows * padded_value_dim(value_dim) + parts_of(2 * rows, 16) * 16;
  }
};

/// The softmax of all rows of a call over some of its keys, kept between the parts of a
/// computation whose keys arrive one after another: a state per block of rows of a head.
template <class T>
class PausedRows {
 public:
  explicit PausedRows(const AttentionArgs<T>& args)
      : blocks_(parts_of(args.query_count(), simd::query_block)),
        states_(Tensor<T, 2>::uninitialized(
            {args.batch() * args.heads() * blocks_, simd::query_block * (2 + args.value_dim())})),
        seen_({states_.extent(0)}) {}

  /// The number of the block that begins at row `row` of a head.
  Index index_of(const AttentionArgs<T>& args, Index item, Index head, Index row) const {
    return (item * args.heads() + head) * blocks_ + row / simd::query_block;
  }
  simd::SoftmaxState<T> state(Index index) {
    T* const from = states_.data() + index * states_.extent(1);
    return {from, from + simd::query_block, from + 2 * simd::query_block};
  }
  /// Whether the block has met a key that one of its rows sees.
  bool& seen(Index index) { return seen_[index]; }

 private:
  Index blocks_;
  Tensor<T, 2> states_;
  Tensor<bool, 1> seen_;
};

/// The softmax states of all rows of a call over some chunks of keys, each alone, and a total over
/// the keys that have been added up: for calls whose chunks lie in several processes.
template <class T>
class ChunkRows {
 public:
  /// `chunks`, in ascending order, must live as long.
  ChunkRows(Index rows, Index value_dim, std::span<const Index> chunks)
      : rows_(rows),
        value_dim_(value_dim),
        chunks_(chunks),
        states_({count() + 1, RowStates<T>::size(rows, value_dim)}) {}

  Index count() const { return static_cast<Index>(chunks_.size()); }
  Index chunk(Index i) const { return chunks_[static_cast<std::size_t>(i)]; }
  /// The states of the rows from `row` on, over chunk(i).
  RowStates<T> states(Index i, Index row) { return in(i + 1, row); }
  RowStates<T> total(Index row) { return in(0, row); }
  /// The memory of the total, which another process can take over.
  TensorView<T, 1> total() { return states_.view().select(0, 0); }

 private:
  RowStates<T> in(Index place, Index row) {
    T* const memory = states_.data() + place * states_.extent(1);
    return RowStates<T>::in(memory, rows_, value_dim_).from(row, value_dim_);
  }

  Index rows_;
  Index value_dim_;
  std::span<const Index> chunks_;
  Tensor<T, 2> states_;
};

/// Number of keys that a task of the backward pass processes together, starting at absolute
/// multiples of it: their gradients stay in the caches while all queries pass by. The gradient of a
/// query is summed chunk by chunk, in order, so chunks may run on different threads.
inline constexpr Index backward_chunk = 2 * simd::key_block;

/// One thread's arrays for one chunk of keys and one block of queries at a time. `head_row` and
/// `value_row` are the dims padded to whole vectors.
template <class T>
struct BackwardScratch {
  BackwardScratch(Carver carver, Index head_dim, Index value_dim, Index row_lanes)
      : head_row(parts_of(head_dim, row_lanes) * row_lanes),
        value_row(parts_of(value_dim, row_lanes) * row_lanes),
        queries(carver.take<T>(simd::query_block * head_row)),
        grad_output(carver.take<T>(simd::query_block * value_row)),
        packed_queries(carver.take<T>(simd::query_block * head_dim)),
        packed_gradient(carver.take<T>(simd::query_block * value_row)),
        probabilities(carver.take<T>(simd::query_block * simd::key_block)),
        grad_scores(carver.take<T>(simd::query_block * simd::key_block)),
        grad_queries(carver.take<T>(simd::query_block * head_row)),
        rows(carver.take<T>(simd::query_block * head_row)),
        chunk{carver.take<T>(backward_chunk * head_row),
              carver.take<T>(backward_chunk * value_row)},
        keys(carver.take<T>(simd::key_block * head_dim)),
        values(carver.take<T>(simd::key_block * value_dim)),
        gathered{carver.take<T>(simd::key_block * head_row),
                 carver.take<T>(simd::key_block * value_row)},
        words(carver.take<std::uint64_t>(simd::key_block)),
        kept(carver.take<Index>(simd::key_block)),
        bytes(carver.used()) {}

  static BackwardScratch of_this_thread(Index head_dim, Index value_dim, Index row_lanes) {
    const BackwardScratch sizes(Carver(nullptr), head_dim, value_dim, row_lanes);
    return {Carver(Scratch::of_this_thread<BackwardScratch>(sizes.bytes)), head_dim, value_dim,
            row_lanes};
  }

  Index head_row;
  Index value_row;
  T* queries;
  T* grad_output;
  T* packed_queries;
  T* packed_gradient;
  T* probabilities;
  T* grad_scores;
  T* grad_queries;
  T* rows;
  simd::KeyGradients<T> chunk;
  T* keys;
  T* values;
  simd::KeyGradients<T> gathered;
  std::uint64_t* words;
  Index* kept;
  std::size_t bytes;
};

}  // namespace heed::detail
