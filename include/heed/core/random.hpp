// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/philox.hpp>
#include <heed/core/scalar.hpp>

namespace heed {

namespace detail {

/// The quantile function of the standard normal distribution for 0 < p ≤ 1/2; relative accuracy
/// about 1e-15. Uses correctly rounded operations only (+ − · / √): the same bits everywhere.
/// Algorithm AS 241 (PPND16), Wichura 1988.
double normal_quantile(double p);

}  // namespace detail

/// A random number generator with the same numbers on every platform, for weights, sampling and
/// tests. A value: a copy draws the same numbers again. Streams of one seed are independent; each
/// has 2⁶⁶ words. For random numbers that belong to positions see `philox`.
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
  Index integer(Index bound);

  /// The state of a generator: key, counter, and the number of words used of the counter's block.
  using State = std::array<std::uint32_t, 7>;
  State state() const;
  /// A generator that continues from a state. Throws InvalidArgument for an invalid state.
  static Random from_state(const State& state);

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

#if HEED_DEFINITIONS
#include <heed/core/detail/random.inl>
#endif
