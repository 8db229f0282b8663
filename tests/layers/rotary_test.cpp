// SPDX-License-Identifier: MIT
#include <heed/layers/rotary.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

Tensor<double, 4> random_heads(std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  return random_tensor<double, 4>({2, 3, 5, 8}, bits);
}

TEST(Rotary, TurnsPairsByTheirAngle) {
  for (const auto pairing : {RotaryPairing::half_split, RotaryPairing::interleaved}) {
    const auto x = random_heads(1);
    auto y = x;
    Rotary({.base = 100, .scaling = 2, .pairing = pairing}, 8).apply(y.view(), 3);
    for (Index token = 0; token < 5; ++token) {
      for (Index i = 0; i < 4; ++i) {
        const Index a = pairing == RotaryPairing::half_split ? i : 2 * i;
        const Index b = pairing == RotaryPairing::half_split ? i + 4 : 2 * i + 1;
        const double angle =
            static_cast<double>(token + 3) / 2 * std::pow(100, -static_cast<double>(i) / 4);
        const double real = x(1, 2, token, a), imaginary = x(1, 2, token, b);
        EXPECT_NEAR(y(1, 2, token, a), real * std::cos(angle) - imaginary * std::sin(angle), 1e-14);
        EXPECT_NEAR(y(1, 2, token, b), real * std::sin(angle) + imaginary * std::cos(angle), 1e-14);
      }
    }
  }
}

/// The angles, in double, by which position 1 turns the pairs of a head of 8.
std::vector<double> angles_of(const RotaryOptions& options) {
  Tensor<double, 4> x({1, 1, 1, 8});
  for (Index i = 0; i < 4; ++i) x(0, 0, 0, i) = 1;
  Rotary(options, 8).apply(x.view(), 1);
  std::vector<double> angles;
  for (Index i = 0; i < 4; ++i) angles.push_back(std::atan2(x(0, 0, 0, i + 4), x(0, 0, 0, i)));
  return angles;
}

TEST(Rotary, LowFrequenciesAloneAreDividedAsInLlama3) {
  // Frequencies 1, 0.32, 0.1 and 0.03 turn 10.2, 3.2, 1.02 and 0.3 times in 64 positions.
  const auto angles =
      angles_of({.base = 100, .low_frequencies = {.factor = 8, .original_length = 64}});
  for (std::size_t i = 0; i < 4; ++i) {
    const double frequency = std::pow(100, -static_cast<double>(i) / 4);
    const double turns = 64 * frequency / (2 * std::acos(-1));
    const double kept = i == 0 ? 1 : i == 3 ? 0 : (turns - 1) / 3;
    EXPECT_NEAR(angles[i], kept * frequency + (1 - kept) * frequency / 8, 1e-15) << i;
  }
  const auto others = angles_of(
      {.base = 100,
       .scaling = 2,
       .low_frequencies = {.factor = 8, .low_turns = 4, .high_turns = 9, .original_length = 64}});
  EXPECT_NEAR(others[0], 0.5, 1e-15);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_NEAR(others[i], std::pow(100, -static_cast<double>(i) / 4) / 16, 1e-15) << i;
  }
}

TEST(Rotary, DivisorsAreOneAPair) {
  const auto plain = angles_of({.base = 100});
  const auto divided = angles_of({.base = 100, .divisors = {1, 2, 4, 8}});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(divided[i], plain[i] / std::pow(2, i), 1e-15);
  }
  // What llama.cpp stores of a Llama 3: by what each frequency of LowFrequencyScaling is divided.
  const LowFrequencyScaling low{.factor = 8, .original_length = 64};
  std::vector<double> divisors;
  for (const double angle : plain) divisors.push_back(angle / low.scaled(angle));
  const auto stored = angles_of({.base = 100, .divisors = divisors});
  const auto computed = angles_of({.base = 100, .low_frequencies = low});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(stored[i], computed[i], 1e-15);
  const auto x = random_heads(4);
  auto before = x, same = x;
  Rotary({.base = 7}, 8).apply(before.view(), 100);
  Rotary({.base = 7, .low_frequencies = {.original_length = 3}, .divisors = {1, 1, 1, 1}}, 8)
      .apply(same.view(), 100);
  EXPECT_TRUE(same_bits(before, same)) << "a factor and divisors of 1 change no bit";
}

/// Far from 0, below it, across the borders of stretches, and one token at a time: a position's
/// bits.
TEST(Rotary, BitsDependOnThePositionAlone) {
  for (const auto pairing : {RotaryPairing::half_split, RotaryPairing::interleaved}) {
    const Rotary rotary({.base = 100, .pairing = pairing}, 10);
    for (const Index first : {Index{-20}, Index{-1}, Index{0}, Index{13}, Index{100000}}) {
      std::mt19937_64 bits(7);
      const auto x = random_tensor<float, 4>({2, 3, 40, 10}, bits);
      auto whole = x, apart = x;
      rotary.apply(whole.view(), first);
      for (Index token = 0; token < 40; ++token) {
        rotary.apply(apart.view().slice(2, token, token + 1), first + token);
        for (Index i = 0; i < 5; ++i) {
          const bool split = pairing == RotaryPairing::half_split;
          const Index a = split ? i : 2 * i, b = split ? i + 5 : 2 * i + 1;
          const double angle =
              static_cast<double>(first + token) * std::pow(100, -static_cast<double>(i) / 5);
          const double real = static_cast<double>(x(1, 2, token, a));
          const double imaginary = static_cast<double>(x(1, 2, token, b));
          EXPECT_NEAR(static_cast<double>(whole(1, 2, token, a)),
                      real * std::cos(angle) - imaginary * std::sin(angle), 1e-6)
              << first + token;
        }
      }
      EXPECT_TRUE(same_bits(whole, apart)) << first;
    }
  }
}

TEST(Rotary, OnlyTheFirstElementsTurnWhereFewerAreAsked) {
  const auto x = random_heads(2);
  auto y = x;
  Rotary({.dims = 4}, 8).apply(y.view(), 1);
  for (Index i = 0; i < 8; ++i) EXPECT_EQ(y(0, 0, 2, i) == x(0, 0, 2, i), i >= 4) << i;
  for (Index i = 0; i < 2; ++i) {  // by frequencies of as many: base^(-2i / dims)
    const double angle = 3 * std::pow(10000, -2 * static_cast<double>(i) / 4);
    const double real = x(0, 0, 2, i), imaginary = x(0, 0, 2, i + 2);
    EXPECT_NEAR(y(0, 0, 2, i), real * std::cos(angle) - imaginary * std::sin(angle), 1e-14);
    EXPECT_NEAR(y(0, 0, 2, i + 2), real * std::sin(angle) + imaginary * std::cos(angle), 1e-14);
  }
}

TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  const Rotary rotary({}, 8);
  const auto dot = [&](Index query_at, Index key_at) {
    auto q = random_heads(3), k = random_heads(4);
    rotary.apply(q.view(), query_at);
    rotary.apply(k.view(), key_at);
    double sum = 0;
    for (Index i = 0; i < 8; ++i) sum += q(0, 0, 0, i) * k(0, 0, 0, i);
    return sum;
  };
  EXPECT_NEAR(dot(9, 4), dot(1005, 1000), 1e-11);
  EXPECT_GT(std::fabs(dot(9, 4) - dot(9, 5)), 1e-3);
}

TEST(Rotary, UndoGoesBackAndStridesDoNotMatter) {
  const auto x = random_heads(5);
  auto y = x, z = x;
  const Rotary rotary({}, 8);
  rotary.apply(y.view(), 11);
  auto spread = Tensor<double, 4>::copy_of(x.view().permute({3, 2, 1, 0}));
  rotary.apply(spread.view().permute({3, 2, 1, 0}), 11);
  EXPECT_TRUE(same_bits(Tensor<double, 4>::copy_of(spread.view().permute({3, 2, 1, 0})), y));
  rotary.undo(y.view(), 11);
  for (Index i = 0; i < x.size(); ++i) EXPECT_NEAR(y.data()[i], x.data()[i], 1e-14);
}

TEST(Rotary, ATokenAloneHasTheSameBits) {
  auto x = random_heads(6);
  auto one = Tensor<double, 4>::copy_of(x.view().slice(2, 3, 4));
  const Rotary rotary({}, 8);
  rotary.apply(x.view(), 0);
  rotary.apply(one.view(), 3);
  EXPECT_TRUE(same_bits(Tensor<double, 4>::copy_of(x.view().slice(2, 3, 4)), one));
}

TEST(Rotary, RefusesWhatCannotTurn) {
  EXPECT_THROW(Rotary({}, 7), InvalidArgument);
  EXPECT_THROW(Rotary({.dims = 10}, 8), InvalidArgument);
  EXPECT_THROW(Rotary({.base = 0}, 8), InvalidArgument);
  EXPECT_THROW(Rotary({.scaling = -1}, 8), InvalidArgument);
  for (const double none : {double{INFINITY}, double{NAN}}) {
    EXPECT_THROW(Rotary({.base = none}, 8), InvalidArgument);
    EXPECT_THROW(Rotary({.scaling = none}, 8), InvalidArgument);
  }
  EXPECT_THROW(Rotary({.base = 1e-300, .scaling = 1e-300}, 8), InvalidArgument);
  for (const double bad : {0., -1., double{INFINITY}, double{NAN}}) {
    EXPECT_THROW(Rotary({.low_frequencies = {.factor = bad}}, 8), InvalidArgument) << bad;
    EXPECT_THROW(Rotary({.low_frequencies = {.low_turns = bad}}, 8), InvalidArgument) << bad;
    EXPECT_THROW(Rotary({.low_frequencies = {.high_turns = bad}}, 8), InvalidArgument) << bad;
    EXPECT_THROW(Rotary({.low_frequencies = {.original_length = bad}}, 8), InvalidArgument) << bad;
    EXPECT_THROW(Rotary({.divisors = {1, 1, bad, 1}}, 8), InvalidArgument) << bad;
  }
  EXPECT_THROW(Rotary({.low_frequencies = {.low_turns = 4}}, 8), InvalidArgument)
      << "as high_turns";
  EXPECT_THROW(Rotary({.divisors = {1, 1, 1}}, 8), InvalidArgument) << "of four pairs";
  EXPECT_THROW(Rotary({.dims = 4, .divisors = {1, 1, 1, 1}}, 8), InvalidArgument) << "of two";
  Tensor<float, 4> small({1, 1, 1, 4});
  EXPECT_THROW(Rotary({}, 8).apply(small.view()), ShapeError);
  EXPECT_THROW(Rotary().apply(small.view()), InvalidArgument) << "it would turn nothing";
}

TEST(Rotary, RefusesToTurnAnElementTwice) {
  const Rotary rotary({}, 4);
  Tensor<float, 4> heads({1, 1, 3, 4}), items({1, 2, 3, 4});
  heads.fill(1);
  items.fill(1);
  const auto before = heads;
  EXPECT_THROW(rotary.apply(heads.view().broadcast(1, 2), 1), ShapeError);
  EXPECT_THROW(rotary.undo(heads.view().broadcast(1, 2), 1), ShapeError);
  EXPECT_THROW(rotary.apply(items.view().broadcast(0, 2)), ShapeError);
  EXPECT_THROW(rotary.apply(heads.view().broadcast(1, 2), Positions(Tensor<Index, 2>({1, 3}))),
               ShapeError);
  EXPECT_TRUE(same_bits(heads, before));
}

/// Positions in any order, far apart and the same twice, from row to row others.
TEST(Rotary, TurnsEveryTokenByItsOwnPosition) {
  std::mt19937_64 bits(7);
  for (const auto pairing : {RotaryPairing::half_split, RotaryPairing::interleaved}) {
    const Rotary rotary({.base = 100, .pairing = pairing}, 10);
    const auto x = random_tensor<float, 4>({2, 3, 40, 10}, bits);
    Tensor<Index, 2> ids({2, 40});
    for (Index i = 0; i < 80; ++i) ids.data()[i] = i % 7 == 0 ? 1000003 * i : (i * 5) % 33;
    auto together = x, apart = x, back = x;
    rotary.apply(together.view(), Positions(ids));
    for (Index row = 0; row < 2; ++row) {
      for (Index token = 0; token < 40; ++token) {
        rotary.apply(apart.view().slice(0, row, row + 1).slice(2, token, token + 1),
                     ids(row, token));
      }
    }
    EXPECT_TRUE(same_bits(together, apart));
    rotary.apply(back.view(), Positions(ids));
    rotary.undo(back.view(), Positions(ids));
    for (Index i = 0; i < x.size(); ++i) EXPECT_NEAR(back.data()[i], x.data()[i], 1e-6);
    EXPECT_THROW(rotary.apply(apart.view(), Positions(Tensor<Index, 2>({2, 39}))), ShapeError);
  }
}

}  // namespace
}  // namespace heed::test
