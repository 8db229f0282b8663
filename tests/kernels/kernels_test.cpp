// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

using simd::Isa;

class Kernels : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// The error of `value` against 2^x in units of the last place of the result.
template <class T, class W>
double ulps(T value, W exact) {
  const int digits = std::numeric_limits<T>::digits;
  return static_cast<double>(std::fabs(static_cast<W>(value) - exact) /
                             std::ldexp(W{1}, std::ilogb(exact) - digits + 1));
}

double worst_error(const std::vector<float>& in) {
  std::vector<float> out(in.size());
  simd::kernels<float>().exp2(in.data(), out.data(), static_cast<Index>(in.size()));
  double worst = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    worst = std::max(worst, ulps(out[i], std::exp2(static_cast<double>(in[i]))));
  }
  return worst;
}

/// The error below 2^-126, where results are flushed to 0 or lose places, in units of 2^-126: next
/// to a largest weight of 1 that is nothing.
double flushed_error(const std::vector<float>& in) {
  std::vector<float> out(in.size());
  simd::kernels<float>().exp2(in.data(), out.data(), static_cast<Index>(in.size()));
  double worst = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double error = static_cast<double>(out[i]) - std::exp2(static_cast<double>(in[i]));
    worst = std::max(worst, std::fabs(error) * 0x1p126);
  }
  return worst;
}

/// The largest error over the floats from −from to −to: every one, or one of `step`.
double sweep(float from, float to, std::uint32_t step, double (*error)(const std::vector<float>&)) {
  std::vector<float> in;
  double worst = 0;
  const auto last = __builtin_bit_cast(std::uint32_t, to);
  for (auto bits = __builtin_bit_cast(std::uint32_t, from); bits <= last; bits += step) {
    in.push_back(-__builtin_bit_cast(float, bits));
    if (in.size() < 1 << 16) continue;
    worst = std::max(worst, error(in));
    in.clear();
  }
  return std::max(worst, error(in));
}

// 2^x for x in [-150.1, 0] is e^y for y in [-104, 0], from where on e^y is 0 in float.
// HEED_EXHAUSTIVE=1, which the option HEED_NIGHTLY sets, takes every float, else one in a thousand.
TEST_P(Kernels, Exp2OfEveryFloatOfSoftmaxIsWithinOneAndAHalfUlp) {
  const char* exhaustive = std::getenv("HEED_EXHAUSTIVE");
  const std::uint32_t step = exhaustive && *exhaustive == '1' ? 1 : 1021;
  const double worst = sweep(0.f, 126.f, step, worst_error);
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, 1.5);
  EXPECT_GT(worst, 0.3);
  EXPECT_LE(sweep(126.f, 150.1f, step, flushed_error), 1.0);
}

TEST_P(Kernels, Exp2InDoubleIsWithinOneAndAHalfUlp) {
  std::vector<double> in, out(100000);
  for (int i = 0; i < 100000; ++i) in.push_back(-1021.9 * i / 100000);
  simd::kernels<double>().exp2(in.data(), out.data(), 100000);
  double worst = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    worst = std::max(worst, ulps(out[i], std::exp2(static_cast<long double>(in[i]))));
  }
  EXPECT_LE(worst, 1.5);
}

template <class T>
void check_special_values() {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> in = {T{0},
                             -T{0},
                             T{1},
                             T{-1},
                             infinity,
                             -infinity,
                             T{5000},
                             T{-5000},
                             T{10},
                             -T{0.5},
                             std::numeric_limits<T>::quiet_NaN()};
  std::vector<T> out(in.size());
  simd::kernels<T>().exp2(in.data(), out.data(), static_cast<Index>(in.size()));
  const std::vector<T> expected = {1, 1, 2, T{0.5}, infinity, 0, infinity, 0, 1024};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(out[i], expected[i]) << in[i];
  EXPECT_FALSE(std::signbit(out[5]) || std::signbit(out[7]));
  EXPECT_TRUE(std::isnan(out.back()));
}

TEST_P(Kernels, Exp2OfSpecialValues) {
  check_special_values<float>();
  check_special_values<double>();
}

// With vectors of 64 bytes nothing below the smallest normal number remains: processors take a
// hundred times as long to make and to multiply such numbers.
TEST_P(Kernels, Exp2AtTheEndOfTheRange) {
  const bool wide = GetParam() >= Isa::avx512;
  for (float x = -125; x > -152; x -= 0.03125f) {
    float out = -1;
    simd::kernels<float>().exp2(&x, &out, 1);
    EXPECT_GE(out, x >= -126 ? 0x1p-126f : 0) << x;
    if (x < -126) {
      EXPECT_LT(out, wide ? 0x1p-149f : 0x1p-126f) << x;
    }
  }
}

TEST_P(Kernels, Exp2KeepsNaNsOfAnyPayload) {
  for (const std::uint32_t bits :
       {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0x7f800001u, 0xff812345u}) {
    const float in = __builtin_bit_cast(float, bits);
    float out = 0;
    simd::kernels<float>().exp2(&in, &out, 1);
    EXPECT_TRUE(std::isnan(out)) << bits;
  }
}

TEST_P(Kernels, EqualInputsGiveEqualBitsInEveryLane) {
  for (Index count = 1; count <= 70; ++count) {
    const std::vector<float> in(static_cast<std::size_t>(count), -3.7f);
    std::vector<float> out(in.size());
    simd::kernels<float>().exp2(in.data(), out.data(), count);
    for (const float value : out) ASSERT_EQ(value, out[0]) << count;
  }
}

template <class T>
void check_pack_and_unpack() {
  const auto& kernels = simd::kernels<T>();
  std::mt19937_64 bits(5);
  for (const Index count : {1, 3, 16, 17, 40, 64}) {
    for (const Index columns : {1, 5, 16, 37}) {
      for (const Index step : {1, 3}) {
        const auto rows = random_tensor<T, 3>({count, columns, step}, bits);
        std::vector<T> packed(static_cast<std::size_t>(64 * columns), T{-7});
        kernels.pack({rows.data(), columns * step, step}, count, columns, T{2}, packed.data());
        const Index lanes = kernels.strip_lanes;
        std::vector<T> factors(64, T{0.5});
        Tensor<T, 3> back({count, columns, step});
        kernels.unpack(packed.data(), count, columns, factors.data(), back.data(), columns * step,
                       step);
        for (Index row = 0; row < count; ++row) {
          for (Index column = 0; column < columns; ++column) {
            const Index at = row / lanes * lanes * columns + column * lanes + row % lanes;
            ASSERT_EQ(packed[static_cast<std::size_t>(at)], 2 * rows(row, column, 0));
            ASSERT_EQ(back(row, column, 0), rows(row, column, 0));
          }
        }
        // Lanes up to the end of the last vector, at least four of them, are numbers.
        for (Index lane = count; lane % 4 != 0; ++lane) {
          const Index at = lane / lanes * lanes * columns + lane % lanes;
          ASSERT_TRUE(std::isfinite(packed[static_cast<std::size_t>(at)])) << "unused lanes";
        }
      }
    }
  }
}

TEST_P(Kernels, UnpackUndoesPack) {
  check_pack_and_unpack<float>();
  check_pack_and_unpack<double>();
}

TEST_P(Kernels, AllFiniteSeesEveryElement) {
  const auto& kernels = simd::kernels<float>();
  for (const Index step : {1, 2}) {
    for (Index bad = -1; bad < 7 * 19; ++bad) {
      Tensor<float, 3> matrix({7, 19, step});
      if (bad >= 0) matrix(bad / 19, bad % 19, 0) = bad % 2 ? INFINITY : NAN;
      EXPECT_EQ(kernels.all_finite({matrix.data(), 19 * step, step}, 7, 19), bad < 0);
    }
  }
  const float large[] = {3e38f, 3e38f, -3e38f};
  EXPECT_TRUE(kernels.all_finite({large, 3, 1}, 1, 3)) << "a finite sum is not asked for";
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Kernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
