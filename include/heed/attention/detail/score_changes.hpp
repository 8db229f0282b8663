// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include <heed/attention/options.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>

namespace heed::detail {

/// What a call does to its scores beyond scale and mask: AttentionOptions after their checks.
template <class T>
struct ScoreChanges {
  T softcap = 0;
  std::span<const T> alibi_slopes;       // (heads)
  TensorView<const T, 2> relative_bias;  // (heads, distances), no distances: none
  BiasView<T> bias;                      // (batch, heads, queries, keys)
  ScoreFunction<T> function;
  std::span<const T> sinks;  // (heads)
  WeightDropout dropout;

  bool along_diagonals() const { return !alibi_slopes.empty() || relative_bias.extent(1) > 0; }
  bool any_bias() const { return along_diagonals() || bias.given(); }
  bool drops() const { return DropoutDraws(dropout).dropped > 0; }
  /// Whether scores or weights change; sinks change sums alone.
  bool any() const { return softcap != T{0} || any_bias() || function.given() || drops(); }

  /// The biases that depend on head and key − query.
  T at_distance(Index head, Index distance) const {
    T sum = 0;
    if (!alibi_slopes.empty()) {
      const Index away = distance < 0 ? -distance : distance;
      sum = -product(alibi_slopes[static_cast<std::size_t>(head)], static_cast<T>(away));
    }
    if (relative_bias.extent(1) > 0) {
      const Index reach = relative_bias.extent(1) / 2;
      const Index within = distance < -reach ? -reach : distance > reach ? reach : distance;
      sum += relative_bias(head, within + reach);
    }
    return sum;
  }
};

/// Fails unless there is nothing or one number per head.
template <class T>
void check_per_head(const char* name, std::span<const T> values, Index heads) {
  if (values.empty() || static_cast<Index>(values.size()) == heads) return;
  throw_shape_error("attention: ", values.size(), " ", name, " for ", heads, " heads");
}

/// The changes that `options` ask of scores (batch, heads, queries, keys). Throws ShapeError or
/// InvalidArgument.
template <class T>
ScoreChanges<T> checked_changes(const AttentionOptions<T>& options, const Extents<4>& scores) {
  const T cap = options.softcap * T{2};  // kernels hold it log2(e) times as large
  if (!(cap >= T{0} && cap - cap == T{0})) {
    throw_invalid_argument(
        "attention: softcap must be finite and not negative, and twice it finite");
  }
  if (!(options.dropout.probability >= 0 && options.dropout.probability <= 1)) {
    throw_invalid_argument("attention: dropout has probability ", options.dropout.probability,
                           ", expected 0 to 1");
  }
  check_per_head<T>("alibi_slopes", options.alibi_slopes, scores[1]);
  check_per_head<T>("sinks", options.sinks, scores[1]);
  ScoreChanges<T> changes{options.softcap,        options.alibi_slopes,
                          options.relative_bias,  options.bias.over(scores),
                          options.score_function, options.sinks,
                          options.dropout};
  auto& relative = changes.relative_bias;
  if (relative.extent(0) == 0 && relative.extent(1) == 0) return changes;
  if (relative.extent(1) % 2 == 0) {
    throw_shape_error("attention: relative_bias has ", relative.extent(1),
                      " distances, expected an odd number: -r to r");
  }
  if (relative.extent(0) == 1 && scores[1] != 1) relative = relative.broadcast(0, scores[1]);
  if (relative.extent(0) != scores[1]) {
    throw_shape_error("attention: relative_bias has ", relative.extent(0), " rows for ", scores[1],
                      " heads");
  }
  return changes;
}

}  // namespace heed::detail
