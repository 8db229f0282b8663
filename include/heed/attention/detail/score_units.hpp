// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/problem.hpp>

namespace heed::detail {

// Kernels count in powers of 2: log2(e), and ln(2) for the way back.
inline constexpr double bits_per_nat = 1.4426950408889634074;
inline constexpr double nats_per_bit = 0.69314718055994530942;

/// What queries are multiplied by before their products with keys, so that scores come in the
/// kernels' units.
template <class T>
T query_factor(const AttentionProblem<T>& problem) {
  const auto scale = static_cast<double>(problem.scale);
  if (problem.changes.softcap != T{0}) {  // tanh_of_log2 takes 2·log2(e)·score / softcap
    return static_cast<T>(scale * 2 * bits_per_nat / static_cast<double>(problem.changes.softcap));
  }
  if (problem.changes.function.given()) return problem.scale;
  return static_cast<T>(scale * bits_per_nat);
}

/// A score, or ±inf where the kernels' units have none for it: it is log2(e) times as large there.
template <class T>
T within_range(T score) {
  const T bits = score * static_cast<T>(bits_per_nat);
  return bits - bits == T{0} ? score : bits;
}

}  // namespace heed::detail
