// SPDX-License-Identifier: MIT
#include <heed/kernels/row_kernels.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/core/philox.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

using simd::ActivationKind;

class RowKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

long double exact_activation(ActivationKind f, long double x) {
  switch (f) {
    case ActivationKind::relu:
      return x > 0 ? x : 0;
    case ActivationKind::gelu:
      return x * std::erfc(-x / std::sqrt(2.0L)) / 2;
    case ActivationKind::gelu_tanh:
      return x / 2 *
             (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846L) * (x + 0.044715L * x * x * x)));
    case ActivationKind::silu:
      break;
  }
  return x / (1 + std::exp(-x));
}

long double exact_slope(ActivationKind f, long double x) {
  if (f == ActivationKind::relu) return x > 0 ? 1 : 0;
  const long double h = 1e-5L;  // the error is h⁴ and what rounding leaves of 1e-19 / h
  const auto y = [&](int i) { return exact_activation(f, x + static_cast<long double>(i) * h); };
  return (8 * (y(1) - y(-1)) - (y(2) - y(-2))) / (12 * h);
}

constexpr ActivationKind all[] = {ActivationKind::relu, ActivationKind::gelu,
                                  ActivationKind::gelu_tanh, ActivationKind::silu};

template <class T>
void check_activations(double relative) {
  std::vector<T> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<T>(i) * static_cast<T>(0.00317));
  const auto count = static_cast<Index>(x.size());
  std::vector<T> y(x.size()), slope(x.size());
  for (const ActivationKind f : all) {
    simd::row_kernels<T>().activate(f, x.data(), y.data(), slope.data(), count);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto exact = static_cast<double>(exact_activation(f, static_cast<long double>(x[i])));
      // tanh in the exact formula cancels far below 0. Sets without a fused multiply-add feel the
      // rounding of x² in the exponent.
      const double floor = f == ActivationKind::gelu_tanh ? relative * 1e-3 : 1e-30;
      const double wide = relative * (1 + static_cast<double>(x[i] * x[i]));
      ASSERT_NEAR(static_cast<double>(y[i]), exact, wide * std::fabs(exact) + floor)
          << static_cast<int>(f) << " at " << x[i];
      ASSERT_NEAR(static_cast<double>(slope[i]),
                  static_cast<double>(exact_slope(f, static_cast<long double>(x[i]))),
                  3 * relative + 2e-13)
          << static_cast<int>(f) << " slope at " << x[i];
    }
  }
}

TEST_P(RowKernels, ActivationsAreAccurate) {
  check_activations<float>(1e-6);
  check_activations<double>(2e-15);
}

TEST_P(RowKernels, ActivationsOfSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0, 1e30f, infinity, std::nanf("")};
  std::vector<float> y(4);
  for (const ActivationKind f : all) {
    simd::row_kernels<float>().activate(f, x.data(), y.data(), nullptr, 4);
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 1e30f) << static_cast<int>(f);
    EXPECT_EQ(y[2], infinity) << static_cast<int>(f);
    EXPECT_TRUE(std::isnan(y[3])) << static_cast<int>(f);
  }
}

TEST_P(RowKernels, SlopesOfLargeNumbersAreFinite) {
  const std::vector<float> x = {1e30f, -1e30f, 3e19f, -3e19f};
  std::vector<float> y(4), slopes(4);
  for (const ActivationKind f : all) {
    simd::row_kernels<float>().activate(f, x.data(), y.data(), slopes.data(), 4);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(slopes[i], i % 2 == 0 ? 1 : 0) << static_cast<int>(f) << " at " << x[i];
    }
  }
}

TEST_P(RowKernels, BitsDoNotDependOnThePlace) {
  std::mt19937_64 bits(3);
  const auto x = random_tensor<float, 1>({150}, bits, 4.f),
             g = random_tensor<float, 1>({150}, bits);
  const auto& kernels = simd::row_kernels<float>();
  for (const ActivationKind f : all) {
    std::vector<float> whole(150), slopes(150);
    kernels.activate(f, x.data(), whole.data(), slopes.data(), 150);
    for (Index i = 0; i < 150; ++i) {
      const auto at = static_cast<std::size_t>(i);
      float one = 0, slope = 0;
      kernels.activate(f, x.data() + i, &one, nullptr, 1);
      ASSERT_EQ(std::memcmp(&one, &whole[at], 4), 0);
      one = x.data()[i];
      kernels.activate(f, &one, &one, &slope, 1);
      ASSERT_EQ(std::memcmp(&one, &whole[at], 4), 0);
      ASSERT_EQ(std::memcmp(&slope, &slopes[at], 4), 0);
    }
  }
}

template <class T>
void check_rows(double u) {
  std::mt19937_64 bits(4);
  const auto& kernels = simd::row_kernels<T>();
  for (Index count = 0; count <= 200; ++count) {
    const auto a = random_tensor<T, 1>({count}, bits), b = random_tensor<T, 1>({count}, bits);
    Tensor<T, 1> added = b, product({count}), scaled({count});
    kernels.add(a.data(), added.data(), count);
    kernels.multiply(a.data(), b.data(), product.data(), count);
    kernels.shift_scale(a.data(), T{0.5}, T{3}, scaled.data(), count);
    Tensor<T, 1> real = b, imaginary = a;
    kernels.rotate(a.data(), b.data(), real.data(), imaginary.data(), count);
    for (Index i = 0; i < count; ++i) {
      ASSERT_EQ(added[i], a[i] + b[i]);
      ASSERT_EQ(product[i], a[i] * b[i]);
      ASSERT_EQ(real[i], detail::product(b[i], a[i]) - detail::product(a[i], b[i]));
      ASSERT_EQ(imaginary[i], detail::product(a[i], a[i]) + detail::product(b[i], b[i]));
      ASSERT_NEAR(static_cast<double>(scaled[i]), static_cast<double>((a[i] - T{0.5}) * 3), 10 * u);
    }
  }
}

TEST_P(RowKernels, RowsOfEveryLength) {
  check_rows<float>(0x1p-24);
  check_rows<double>(0x1p-53);
}

/// Neighbors and halves of a row: the same rotations, the same bits.
template <class T>
void check_neighbors() {
  std::mt19937_64 bits(5);
  const auto& kernels = simd::row_kernels<T>();
  for (Index pairs = 0; pairs <= 70; ++pairs) {
    const auto cosines = random_tensor<T, 1>({pairs}, bits),
               sines = random_tensor<T, 1>({pairs}, bits);
    auto real = random_tensor<T, 1>({pairs}, bits), imaginary = random_tensor<T, 1>({pairs}, bits);
    std::vector<T> row, row_cosines, row_sines;
    for (Index i = 0; i < pairs; ++i) {
      row.insert(row.end(), {real[i], imaginary[i]});
      row_cosines.insert(row_cosines.end(), {cosines[i], cosines[i]});
      row_sines.insert(row_sines.end(), {-sines[i], sines[i]});
    }
    row.push_back(7);  // behind the row
    kernels.rotate(cosines.data(), sines.data(), real.data(), imaginary.data(), pairs);
    kernels.rotate_neighbors(row_cosines.data(), row_sines.data(), row.data(), 2 * pairs);
    for (Index i = 0; i < pairs; ++i) {
      const auto at = static_cast<std::size_t>(2 * i);
      ASSERT_EQ(row[at], real[i]) << i << " of " << pairs;
      ASSERT_EQ(row[at + 1], imaginary[i]) << i << " of " << pairs;
    }
    ASSERT_EQ(row.back(), 7);
  }
}

TEST_P(RowKernels, NeighborsRotateLikeHalves) {
  check_neighbors<float>();
  check_neighbors<double>();
}

template <class T>
void expect_drops_of_philox() {
  std::mt19937_64 bits(11);
  const auto word = [&] { return static_cast<std::uint32_t>(bits()); };
  for (int i = 0; i < 300; ++i) {
    const simd::DropRun<T> run{word(), {word(), word()}, word(), static_cast<T>(1.25)};
    const std::uint64_t four = 0xFFFFFFFFu - bits() % 9;  // counters pass 2³²
    std::vector<T> x(bits() % 150 + 1), expected;
    for (T& value : x) value = static_cast<T>(bits() % 1000) - 500;
    x[0] = std::numeric_limits<T>::quiet_NaN();
    for (std::size_t at = 0; at < x.size(); ++at) {
      const std::uint64_t counter = four + at / 4;
      const auto draws = philox({static_cast<std::uint32_t>(counter),
                                 static_cast<std::uint32_t>(counter >> 32), run.stream, 0},
                                {run.key[0], run.key[1]});
      expected.push_back(draws[at % 4] >= run.least ? x[at] * run.scale : T{0});
    }
    simd::row_kernels<T>().drop(run, four, x.data(), static_cast<Index>(x.size()));
    for (std::size_t at = 0; at < x.size(); ++at) {
      if (expected[at] != expected[at]) {
        ASSERT_NE(x[at], x[at]);
      } else {
        ASSERT_EQ(x[at], expected[at]) << i << " " << at;
        ASSERT_EQ(std::signbit(x[at]), std::signbit(expected[at])) << i << " " << at;
      }
    }
  }
}

TEST_P(RowKernels, DropByTheWordsOfPhilox) {
  expect_drops_of_philox<float>();
  expect_drops_of_philox<double>();
}

INSTANTIATE_TEST_SUITE_P(Sets, RowKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
