// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include <heed/core/detail/normal_quantile.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/philox.hpp>
#include <heed/core/scalar.hpp>

namespace heed {

/// Random numbers that are the same on every platform, for weights, sampling and tests: a value, so
/// a copy draws the same numbers again. Streams of one seed are independent of each other; each
/// holds 2⁶⁶ words. For numbers that belong to positions and not to an order see `philox`.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : key_{low(seed), high(seed)}, counter_{0, 0, low(stream), high(stream)} {}

  /// The next 32 random bits.
  std::uint32_t bits() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      if (++counter_[0] == 0) ++counter_[1];
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Uniform in [0, 1): one of 2²⁴ equally likely floats (one word) or 2⁵³ doubles (two words).
  template <Scalar T = double>
  T uniform() {
    if constexpr (sizeof(T) == 4) {
      return static_cast<T>(bits() >> 8) * 0x1p-24f;
    } else {
      return static_cast<T>(bits_64() >> 11) * 0x1p-53;
    }
  }

  /// Standard normal, by inversion of a uniform with 53 bits (two words); |result| < 8.4. A float
  /// is the rounded double.
  template <Scalar T = double>
  T normal() {
    const std::uint64_t word = bits_64();
    const double p = (static_cast<double>(word >> 12) + 0.5) * 0x1p-53;  // exact, in (0, 1/2)
    const double value = detail::normal_quantile(p);
    return static_cast<T>((word & 1) != 0 ? -value : value);
  }

  /// Uniform in [0, bound), every value equally likely. Throws InvalidArgument for a bound below 1.
  Index integer(Index bound) {
    if (bound < 1) throw_invalid_argument("Random::integer: bound ", bound, ", expected 1 or more");
    const auto last = static_cast<std::uint64_t>(bound) - 1;
    std::uint64_t mask = last;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    // Draws from the next power of two and rejects: unbiased, fewer than two draws on average.
    for (;;) {
      const std::uint64_t value = (mask >> 32 == 0 ? bits() : bits_64()) & mask;
      if (value <= last) return static_cast<Index>(value);
    }
  }

  /// Where a generator stands: key, counter, words used of the counter's block.
  using State = std::array<std::uint32_t, 7>;
  State state() const {
    return {key_[0],
            key_[1],
            counter_[0],
            counter_[1],
            counter_[2],
            counter_[3],
            static_cast<std::uint32_t>(used_)};
  }
  /// A generator that goes on where another stood. Throws InvalidArgument for what no state is.
  static Random from_state(const State& state) {
    Random random(0);
    random.key_ = {state[0], state[1]};
    random.counter_ = {state[2], state[3], state[4], state[5]};
    random.used_ = state[6];
    if (state[6] > 4) throw_invalid_argument("Random::from_state: ", state[6], " words used of 4");
    PhiloxCounter before = random.counter_;
    if (before[0]-- == 0) --before[1];
    random.block_ = philox(before, random.key_);
    return random;
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
  }
  static constexpr std::uint32_t high(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 32);
  }
  std::uint64_t bits_64() {
    const std::uint64_t first = bits();
    return first << 32 | bits();
  }

  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  unsigned used_ = 4;
};

}  // namespace heed
