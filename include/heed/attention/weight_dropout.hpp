// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/philox.hpp>
#include <heed/masks/policy.hpp>
#include <heed/simd/dropout_kernels.hpp>

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

}  // namespace heed
