// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/core/detail/scratch.hpp>
#include <heed/simd/kernels.hpp>

namespace heed::detail {

/// One thread's arrays for one block of queries.
template <class T>
struct ForwardScratch {
  /// `changes`: room for a ScoreChange too.
  ForwardScratch(Carver carver, Index head_dim, Index value_dim, bool changes)
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
        scores(carver.take<T>(changes ? simd::query_block * simd::key_block : 0)),
        bias(carver.take<T>(changes ? simd::query_block * simd::key_block : 0)),
        keep(carver.take<std::uint64_t>(changes ? simd::key_block : 0)),
        bytes(carver.used()) {}

  static ForwardScratch of_this_thread(Index head_dim, Index value_dim, bool changes = false) {
    const ForwardScratch sizes(Carver(nullptr), head_dim, value_dim, changes);
    return {Carver(Scratch::of_this_thread(sizes.bytes)), head_dim, value_dim, changes};
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

}  // namespace heed::detail
