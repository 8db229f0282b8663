// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include <heed/attention/detail/owned_array.hpp>
#include <heed/attention/score_function.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/philox.hpp>
#include <heed/masks/policy.hpp>
#include <heed/simd/attention_kernels.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Dropout of attention weights, for training: each weight is zero with this probability, the
/// others are divided by what is left. Which ones is a function of seed, layer and position alone:
/// the same for every tiling, thread count and platform, in the forward pass and in the backward
/// one. The probability is rounded to a multiple of 1/65536, the division to match. 0: no dropout.
struct WeightDropout {
  float probability = 0;
  std::uint64_t seed = 0;
  std::uint64_t layer = 0;  // tells layers of one seed apart
};

namespace detail {

/// A WeightDropout in the units it is decided in: of 65536 equally likely draws the first `dropped`
/// ones are dropped.
struct DropoutDraws {
  std::uint32_t dropped = 0;
  PhiloxKey key{};

  explicit DropoutDraws(const WeightDropout& dropout)
      : dropped(static_cast<std::uint32_t>(dropout.probability * 65536.0f + 0.5f)) {
    const std::uint64_t mixed = dropout.seed + dropout.layer * 0x9E3779B97F4A7C15u;
    key = {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
  }

  double factor() const { return dropped == 65536 ? 0.0 : 65536.0 / (65536.0 - dropped); }

  /// Bit i: whether the weight of key 8·group + i stays. One Philox block decides eight keys.
  unsigned keep(const Position& at, Index group) const {
    const auto low = [](Index value) { return static_cast<std::uint32_t>(value); };
    const auto words = philox({low(group), low(at.query), low(at.head), low(at.batch)}, key);
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; ++i) {
      const std::uint32_t draw = words[i / 2] >> (i % 2 * 16) & 0xFFFF;
      bits |= static_cast<unsigned>(draw >= dropped) << i;
    }
    return bits;
  }

  /// The counters of several groups or queries from a position on, for the kernels.
  simd::DropoutLanes lanes(const Position& at, Index group, std::uint32_t group_step,
                           std::uint32_t query_step, Index count) const {
    const auto low = [](Index value) { return static_cast<std::uint32_t>(value); };
    return {low(group), low(at.query),    low(at.head), low(at.batch), group_step,
            query_step, {key[0], key[1]}, dropped,      count};
  }
};

}  // namespace detail

/// Whether dropout leaves the weight at a position (absolute, as masks see it).
inline bool keeps(const WeightDropout& dropout, const Position& at) {
  return (detail::DropoutDraws(dropout).keep(at, at.key >> 3) >> (at.key & 7) & 1) != 0;
}

/// `first_query` for causal masks that line up the first query with the first key ("top-left");
/// without it the last query lines up with the last key ("bottom-right").
inline constexpr Index top_left = 0;

/// How attention is computed, beyond its tensors and mask. Every default is the usual one. Keeps
/// its arrays and its score_function; tensors (log_sum_exp, relative_bias, bias) it looks at, which
/// does not compile for temporary ones.
template <class T>
struct AttentionOptions {
  /// Factor on queries · keys; any finite value. Default 1 / √head_dim.
  std::optional<T> scale = {};
  /// Absolute position of the first query, as masks see it. Default keys − queries: the last query
  /// lines up with the last key, as in decoding with a cache. `top_left` for the other convention.
  std::optional<Index> first_query = {};
  /// One first query per batch item in place of `first_query`, for sequences of unequal history.
  OwnedArray<Index> first_queries = {};
  /// How many keys each batch item has, of those the tensors hold; the others are not looked at.
  /// Default: all. The last query lines up with the last of these, unless first_query is given.
  OwnedArray<Index> key_counts = {};
  /// Receives ln Σ exp(score) over visible keys, −inf for a query that sees none: (batch, heads,
  /// queries), or rank 2 or 1 without the leading axes.
  OptionalView<T, 3> log_sum_exp = {};

  // Changes of scores, any of them together, in this order: scale, softcap, biases, score_function,
  // mask, softmax with sinks, dropout.

  /// Above 0: scores become softcap · tanh(score / softcap).
  T softcap = 0;
  /// One per head (alibi_slopes(heads)): − slope · |query − key| is added.
  OwnedArray<T> alibi_slopes = {};
  /// (heads or 1, 2·r + 1): what is added at distance key − query = −r … r, the ends holding for
  /// everything beyond. A view: `relative_bias` makes the tensor of a T5 table.
  TensorView<const T, 2> relative_bias = {};
  /// Added to scores: (batch, heads, queries, keys), or rank 3 to 1 without the leading axes. An
  /// extent of 1 holds for all. A bias of −inf takes its key away from its query, as the additive
  /// masks of other libraries do; a mask does it without reading anything.
  OptionalView<const T, 4> bias = {};
  /// A user's function of score and position.
  ScoreFunction<T> score_function = {};
  /// One per head: e^sink stands in the sum that weights are divided by, as a key without value.
  OwnedArray<T> sinks = {};
  /// Drops weights; for training.
  WeightDropout dropout = {};
};

}  // namespace heed
