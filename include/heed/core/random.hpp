// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/philox.hpp>

#if HEED_DEFINITIONS
#include <cmath>

#include <heed/core/detail/math.hpp>
#endif

namespace heed {

namespace detail {

/// The quantile function of the standard normal distribution for 0 < p ≤ 1/2; relative accuracy
/// about 1e-15. Uses correctly rounded operations only (+ − · / √): the same bits everywhere.
/// Algorithm AS 241 (PPND16), Wichura 1988.
double normal_quantile(double p);

struct WeightDraws;

}  // namespace detail

/// A random number generator with the same numbers on every platform, for weights, sampling and
/// tests. A value: a copy draws the same numbers again. Streams of one seed are independent; each
/// has 2⁶⁶ words. For random numbers that belong to positions see `philox`.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : key_{low(seed), high(seed)}, counter_{0, 0, low(stream), high(stream)} {}

  /// A standard generator of random bits, as std::shuffle and std::normal_distribution take.
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return bits(); }

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

  /// Leaves the state that so many calls of `bits` leave.
  void skip(std::uint64_t words);

  friend struct detail::WeightDraws;
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  unsigned used_ = 4;
  bool skips_weights_ = false;
};

namespace detail {

/// The random weights of new layers.
struct WeightDraws {
  /// For models whose weights are overwritten before they are read: they stay as they are, and all
  /// else that is drawn is as without this.
  static Random skipped(Random random) {
    random.skips_weights_ = true;
    return random;
  }
  /// Sets each value to draw(), which takes two words of `random`.
  template <class Values, class Draw>
  static void fill(Values& values, Random& random, const Draw& draw) {
    if (random.skips_weights_) return random.skip(2 * static_cast<std::uint64_t>(values.size()));
    using Value = typename Values::value_type;
    for (Value& value : values) value = static_cast<Value>(draw());
  }
};

/// What stands for the Random of a layer that is made without one.
template <class T>
Random& expect_random() {
  static_assert(
      never<T>,
      "layers and models draw their weights from a heed::Random, and Dropout its numbers: "
      "Linear<float>(4, 2, random), LanguageModel<float>(options, random)");
  static Random none(0);
  return none;
}

}  // namespace detail

}  // namespace heed

#if HEED_DEFINITIONS
// Defined in one unit of heed::compiled, inline everywhere else.
// NOLINTBEGIN(misc-definitions-in-headers)
namespace heed {

HEED_INLINE double detail::normal_quantile(double p) {
  constexpr double center_top[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                   1.9715909503065514427e3, 1.3731693765509461125e4,
                                   4.5921953931549871457e4, 6.7265770927008700853e4,
                                   3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double center_bottom[] = {1.0000000000000000000e0, 4.2313330701600911252e1,
                                      6.8718700749205790830e2, 5.3941960214247511077e3,
                                      2.1213794301586595867e4, 3.9307895800092710610e4,
                                      2.8729085735721942674e4, 5.2264952788528545610e3};
  constexpr double tail_top[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                 5.76949722146069140550e0,  3.64784832476320460504e0,
                                 1.27045825245236838258e0,  2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double tail_bottom[] = {1.00000000000000000000e0,  2.05319162663775882187e0,
                                    1.67638483018380384940e0,  6.89767334985100004550e-1,
                                    1.48103976427480074590e-1, 1.51986665636164571966e-2,
                                    5.47593808499534494600e-4, 1.05075007164441684324e-9};
  constexpr double far_top[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double far_bottom[] = {1.00000000000000000000e0,  5.99832206555887937690e-1,
                                   1.36929880922735805310e-1, 1.48753612908506148525e-2,
                                   7.86869131145613259100e-4, 1.84631831751005468180e-5,
                                   1.42151175831644588870e-7, 2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (q >= -0.425) {
    const double r = 0.180625 - product(q, q);
    return product(q, polynomial(center_top, r)) / polynomial(center_bottom, r);
  }
  const double r = std::sqrt(-log(p));
  if (r <= 5) return -polynomial(tail_top, r - 1.6) / polynomial(tail_bottom, r - 1.6);
  return -polynomial(far_top, r - 5) / polynomial(far_bottom, r - 5);
}

HEED_INLINE Index Random::integer(Index bound) {
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

HEED_INLINE void Random::skip(std::uint64_t words) {
  for (; words > 0 && used_ < 4; --words) ++used_;
  if (words == 0) return;
  const std::uint64_t blocks = (words - 1) / 4;
  const std::uint64_t count = (std::uint64_t{counter_[1]} << 32 | counter_[0]) + blocks;
  counter_[0] = low(count);
  counter_[1] = high(count);
  for (words -= 4 * blocks; words > 0; --words) bits();
}

HEED_INLINE Random::State Random::state() const {
  return {key_[0], key_[1], counter_[0], counter_[1], counter_[2], counter_[3], used_};
}

HEED_INLINE Random Random::from_state(const State& state) {
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

}  // namespace heed
// NOLINTEND(misc-definitions-in-headers)
#endif
