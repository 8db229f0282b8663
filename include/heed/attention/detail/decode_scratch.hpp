// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/core/detail/scratch.hpp>
#include <heed/simd/decode_kernels.hpp>

namespace heed::detail {

/// Rows of queries that are decoded together at most: heads that share a key head, times queries.
inline constexpr Index decode_rows = 64;

/// value_dim as decoded outputs have it: whole vectors of any instruction set.
inline Index padded_value_dim(Index value_dim) { return (value_dim + 15) / 16 * 16; }

/// One thread's arrays for some rows of queries meeting a block of keys.
template <class T>
struct DecodeScratch {
  DecodeScratch(Carver carver, Index row_count, Index head_dim, Index value_dim, bool changes)
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
        bias(carver.take<T>(changes ? simd::row_keys * row_count : 0)),
        keep(carver.take<std::uint64_t>(changes ? 2 * row_count : 0)),
        bytes(carver.used()) {}

  static DecodeScratch of_this_thread(Index row_count, Index head_dim, Index value_dim,
                                      bool changes) {
    const DecodeScratch sizes(Carver(nullptr), row_count, head_dim, value_dim, changes);
    return {Carver(Scratch::of_this_thread(sizes.bytes)), row_count, head_dim, value_dim, changes};
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

/// The softmax of some rows of queries over one chunk of keys: row by row, as decoding makes them.
template <class T>
struct RowStates {
  T* maximum = nullptr;  // [row]
  T* sum = nullptr;      // [row]
  T* output = nullptr;   // [row][padded_value_dim]

  /// The states of the rows from `row` on.
  RowStates from(Index row, Index value_dim) const {
    return {maximum + row, sum + row, output + row * padded_value_dim(value_dim)};
  }
};

}  // namespace heed::detail
