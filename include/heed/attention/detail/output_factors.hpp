// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/attention/detail/score_change_block.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/simd/kernels.hpp>

namespace heed::detail {

/// Takes a head's sink into the sums: e^sink, after a move of the maximum to the larger of both.
/// The move itself, which the outputs have not made, goes into the factors.
template <class T>
void add_sink(T sink, const simd::SoftmaxState<T>& state, T* factors) {
  const T score = static_cast<T>(static_cast<double>(sink) * bits_per_nat);
  T moves[simd::query_block], shares[simd::query_block];
  for (Index lane = 0; lane < simd::query_block; ++lane) {
    const T old = state.maximum[lane];
    if (score > old) state.maximum[lane] = score;
    moves[lane] = old - state.maximum[lane];
    shares[lane] = score - state.maximum[lane];
  }
  simd::kernels<T>().exp2(moves, moves, simd::query_block);
  simd::kernels<T>().exp2(shares, shares, simd::query_block);
  for (Index lane = 0; lane < simd::query_block; ++lane) {
    state.sum[lane] = product(state.sum[lane], moves[lane]) + shares[lane];
    factors[lane] *= moves[lane];
  }
}

/// What the outputs of a block of queries are multiplied by: 1 / sum, +0 for a lane that saw no
/// key, -0 for one that saw keys of which the sink leaves nothing; for the lanes of `rows` queries
/// and what stands in a vector with them. `sink`: null or the head's.
template <class T>
void find_output_factors(const T* sink, const simd::SoftmaxState<T>& state, Index rows,
                         T* factors) {
  constexpr Index widest = 16;  // lanes of a vector
  const Index lanes = sink != nullptr ? simd::query_block : (rows + widest - 1) / widest * widest;
  bool seen[simd::query_block];
  for (Index lane = 0; lane < lanes; ++lane) {
    seen[lane] = state.sum[lane] != T{0};  // NaN too
    factors[lane] = seen[lane] ? T{1} : T{0};
  }
  if (sink != nullptr) add_sink(*sink, state, factors);
  for (Index lane = 0; lane < lanes; ++lane) {
    if (!seen[lane]) continue;
    factors[lane] /= state.sum[lane];
    if (factors[lane] == T{0}) factors[lane] = -T{0};
  }
}
/// Whether a lane saw a key.
template <class T>
bool saw_keys(T factor) {
  return factor != T{0} || __builtin_signbit(factor) != 0;
}

/// ln 2 · (maximum + log2(sum)): the log-sum-exp of a row, -inf for one that saw no key.
template <class T>
T log_sum_exp_of(T maximum, T sum) {
  if (sum == T{0}) return -std::numeric_limits<T>::infinity();
  return static_cast<T>((static_cast<double>(maximum) + __builtin_log2(static_cast<double>(sum))) *
                        nats_per_bit);
}

}  // namespace heed::detail
