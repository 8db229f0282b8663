// SPDX-License-Identifier: MIT
#include <heed/core/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <core/bits.hpp>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace heed::detail {
namespace {

TEST(NormalQuantile, InvertsTheNormalDistribution) {
  double before = -40;
  for (double p = 1e-300; p < 0.5; p *= 1.01) {
    const double z = normal_quantile(p);
    ASSERT_GT(z, before) << p;
    before = z;
    // Φ(z) by erfc, in long double. An error of z by dz moves Φ by φ(z) dz.
    const long double share = 0.5L * std::erfc(-static_cast<long double>(z) / std::sqrt(2.0L));
    const long double density =
        std::exp(-0.5L * z * z) / std::sqrt(2 * 3.14159265358979323846264338327950288L);
    ASSERT_LE(std::fabs((share - p) / density), 2e-15L * std::fabs(static_cast<long double>(z)))
        << p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0.0);
}

TEST(NormalQuantile, KnownValues) {
  EXPECT_DOUBLE_EQ(normal_quantile(0.025), -1.9599639845400542);
  EXPECT_DOUBLE_EQ(normal_quantile(0.25), -0.6744897501960817);
  EXPECT_NEAR(normal_quantile(1e-20), -9.262340089798408, 2e-14);
}

}  // namespace
}  // namespace heed::detail

namespace heed {
namespace {

using heed::test::BitHash;

TEST(Random, WordsAreThePhiloxBlocksOfSeedAndStream) {
  Random random(0xa4093822'243f6a88, 0x03707344'13198a2e);
  const PhiloxKey key{0x243f6a88, 0xa4093822};
  for (std::uint32_t block = 0; block < 3; ++block) {
    for (const std::uint32_t word : philox({block, 0, 0x13198a2e, 0x03707344}, key)) {
      ASSERT_EQ(random.bits(), word);
    }
  }
}

TEST(Random, ACopyDrawsTheSameAnotherSeedOrStreamDoesNot) {
  Random random(7);
  random.bits();
  Random copy = random;
  Random other_seed(8), other_stream(7, 1);
  int equal_seed = 0, equal_stream = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t word = random.bits();
    ASSERT_EQ(copy.bits(), word);
    equal_seed += other_seed.bits() == word;
    equal_stream += other_stream.bits() == word;
  }
  EXPECT_LE(equal_seed + equal_stream, 1);
}

template <class T>
void check_uniform() {
  Random random(3);
  constexpr int count = 200000, cells = 64;
  std::array<int, cells> hits{};
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const T value = random.uniform<T>();
    ASSERT_GE(value, T{0});
    ASSERT_LT(value, T{1});
    // Exactly representable multiples of 2⁻²⁴ or 2⁻⁵³: no rounding to 1.
    const T scaled = std::ldexp(value, std::numeric_limits<T>::digits);
    ASSERT_EQ(scaled, std::floor(scaled));
    ++hits[static_cast<std::size_t>(value * cells)];
    sum += static_cast<double>(value);
  }
  double chi_square = 0;
  for (const int hit : hits) chi_square += std::pow(hit - count / cells, 2) / (count / cells);
  EXPECT_LT(chi_square, 63 + 5 * std::sqrt(2 * 63.0));
  EXPECT_NEAR(sum / count, 0.5, 5 * std::sqrt(1.0 / 12 / count));
}
TEST(Random, UniformFloats) { check_uniform<float>(); }
TEST(Random, UniformDoubles) { check_uniform<double>(); }

TEST(Random, NormalMomentsAndTails) {
  Random random(4);
  constexpr int count = 400000;
  double sum = 0, square = 0, cube = 0, fourth = 0;
  int below_minus_two = 0, above_two = 0;
  for (int i = 0; i < count; ++i) {
    const double z = random.normal();
    ASSERT_LT(std::fabs(z), 8.4);
    sum += z;
    square += z * z;
    cube += z * z * z;
    fourth += z * z * z * z;
    below_minus_two += z < -2;
    above_two += z > 2;
  }
  const double unit = 5 / std::sqrt(count);  // five standard errors of a unit-variance mean
  EXPECT_NEAR(sum / count, 0, unit);
  EXPECT_NEAR(square / count, 1, unit * std::sqrt(2.0));
  EXPECT_NEAR(cube / count, 0, unit * std::sqrt(15.0));
  EXPECT_NEAR(fourth / count, 3, unit * std::sqrt(96.0));
  const double tail = 0.022750131948179195;
  EXPECT_NEAR(below_minus_two / double{count}, tail, unit * std::sqrt(tail));
  EXPECT_NEAR(above_two / double{count}, tail, unit * std::sqrt(tail));
}

TEST(Random, AFloatNormalIsTheRoundedDouble) {
  Random single(5), twice(5);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(single.normal<float>(), static_cast<float>(twice.normal()));
  }
}

TEST(Random, IsAGeneratorOfTheStandardLibrary) {
  static_assert(std::uniform_random_bit_generator<Random>);
  Random random(1), same(1);
  std::vector<int> numbers(20);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto shuffled = numbers;
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  EXPECT_NE(shuffled, numbers);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, numbers);
  EXPECT_EQ(Random(1)(), same.bits());
}

TEST(Random, IntegersAreUnbiased) {
  Random random(6);
  for (const Index bound : {1, 2, 3, 7, 64, 100}) {
    std::vector<int> hits(static_cast<std::size_t>(bound));
    const int count = 20000 * static_cast<int>(bound < 10 ? bound : 10);
    for (int i = 0; i < count; ++i) ++hits.at(static_cast<std::size_t>(random.integer(bound)));
    const double expected = count / static_cast<double>(bound);
    for (const int hit : hits) EXPECT_NEAR(hit, expected, 5 * std::sqrt(expected)) << bound;
  }
  // A bound just above a power of two: scaling instead of rejecting would leave values out.
  const Index large = (Index{1} << 62) + 1;
  Index highest = 0;
  for (int i = 0; i < 1000; ++i) highest = std::max(highest, random.integer(large));
  EXPECT_LT(highest, large);
  EXPECT_GT(highest, large / 100 * 98);
}

TEST(Random, BoundsBelowOneAreRefused) {
  Random random(7);
  Random untouched = random;
  EXPECT_THROW(random.integer(0), InvalidArgument);
  EXPECT_THROW(random.integer(-5), InvalidArgument);
  EXPECT_EQ(random.bits(), untouched.bits());
}

// Numbers that a user saved with a seed must come back on every platform and in every version.
TEST(Random, TheSameBitsOnEveryCompilerAndFlag) {
  Random random(2024, 5);
  BitHash words, uniforms, normals, integers;
  for (int i = 0; i < 50000; ++i) {
    words.add(std::uint64_t{random.bits()});
    uniforms.add(random.uniform<float>());
    uniforms.add(random.uniform<double>());
    normals.add(random.normal<float>());
    normals.add(random.normal<double>());
    integers.add(static_cast<std::uint64_t>(random.integer(i + 1)));
  }
  EXPECT_EQ(words.value(), 0x762f982ff656c8d5u);
  EXPECT_EQ(uniforms.value(), 0xe8264a7baa08995u);
  EXPECT_EQ(normals.value(), 0xfdc06f54881b48ccu);
  EXPECT_EQ(integers.value(), 0xb7f4b1a4d5c2edf0u);
}

TEST(Random, StateGoesOnWhereItStood) {
  Random random(0x123456789abcdef, 77);
  for (int drawn = 0; drawn < 11; ++drawn) {
    Random again = Random::from_state(random.state());
    Random copy = random;
    for (int i = 0; i < 9; ++i) EXPECT_EQ(again.bits(), copy.bits()) << drawn;
    EXPECT_EQ(again.state(), copy.state());
    random.bits();
  }
  EXPECT_THROW(Random::from_state({0, 0, 0, 0, 0, 0, 5}), InvalidArgument);
}

TEST(Random, SkippedWeightsLeaveTheGeneratorAsDrawnOnes) {
  Random drawn = Random::from_state({1, 2, 0xfffffffe, 3, 4, 5, 4});  // soon carries
  Random skipped = detail::WeightDraws::skipped(drawn);
  for (std::size_t count = 0; count < 9; ++count) {
    std::vector<float> fresh(count), left(count, 1.f);
    detail::WeightDraws::fill(fresh, drawn, [&] { return drawn.uniform(); });
    detail::WeightDraws::fill(left, skipped, [&] { return skipped.uniform(); });
    EXPECT_EQ(left, std::vector<float>(count, 1.f));
    for (std::size_t i = 0; i < count % 3; ++i) EXPECT_EQ(drawn.bits(), skipped.bits());
    EXPECT_EQ(drawn.state(), skipped.state());
  }
}

}  // namespace
}  // namespace heed
