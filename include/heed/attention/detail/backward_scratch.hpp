// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/core/detail/scratch.hpp>
#include <heed/simd/backward_kernels.hpp>
#include <heed/simd/kernels.hpp>

namespace heed::detail {

/// Keys that a task of the backward pass takes together, from absolute multiples of this on: their
/// gradients stay in the caches while all queries pass by. The gradient of a query is summed chunk
/// by chunk, in order, so that chunks may go to different threads.
inline constexpr Index backward_chunk = 2 * simd::key_block;

/// One thread's arrays for one chunk of keys and one block of queries at a time. `head_row` and
/// `value_row` are the dims padded to whole vectors.
template <class T>
struct BackwardScratch {
  BackwardScratch(Carver carver, Index head_dim, Index value_dim, Index row_lanes)
      : head_row((head_dim + row_lanes - 1) / row_lanes * row_lanes),
        value_row((value_dim + row_lanes - 1) / row_lanes * row_lanes),
        queries(carver.take<T>(simd::query_block * head_row)),
        grad_output(carver.take<T>(simd::query_block * value_row)),
        packed_queries(carver.take<T>(simd::query_block * head_dim)),
        packed_gradient(carver.take<T>(simd::query_block * value_row)),
        probabilities(carver.take<T>(simd::query_block * simd::key_block)),
        grad_scores(carver.take<T>(simd::query_block * simd::key_block)),
        grad_queries(carver.take<T>(simd::query_block * head_dim)),
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
