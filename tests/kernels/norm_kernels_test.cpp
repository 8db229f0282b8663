// SPDX-License-Identifier: MIT
#include <heed/kernels/row_kernels.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class NormKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// A norm of some rows, forward and backward, with random weights, bias and gradient.
template <class T>
struct NormCase {
  NormCase(Index count, Index width, bool is_centered, std::mt19937_64& bits)
      : rows(count),
        centered(is_centered),
        weight(random_tensor<T, 1>({width}, bits, 2)),
        bias(random_tensor<T, 1>({width}, bits)),
        x(random_tensor<T, 2>({count, width}, bits, 3)),
        grad(random_tensor<T, 2>({count, width}, bits)) {}

  void run(bool with_bias) {
    const Index width = x.extent(1);
    const simd::NormRun<T> norm{width, weight.data(), with_bias ? bias.data() : nullptr,
                                static_cast<T>(1e-5), centered};
    const auto& kernels = simd::norm_kernels<T>();
    kernels.forward(norm, rows, x.data(), normalized.data(), factors.data(), y.data());
    kernels.backward(norm, rows,
                     {grad.data(), normalized.data(), factors.data(), grad_x.data(),
                      grad_weight.data(), with_bias ? grad_bias.data() : nullptr});
  }

  Index rows;
  bool centered;
  Tensor<T, 1> weight, bias;
  Tensor<T, 2> x, grad;
  Tensor<T, 2> normalized{x.extents()}, y{x.extents()}, grad_x{x.extents()};
  Tensor<T, 1> factors{Extents<1>{rows}};
  Tensor<T, 1> grad_weight{weight.extents()}, grad_bias{weight.extents()};
};

using Real = long double;

/// Compares with the formulas in long double.
template <class T>
void expect_the_formulas(const NormCase<T>& c, bool with_bias, double u) {
  const Index width = c.x.extent(1);
  const auto n = static_cast<Real>(width);
  Tensor<double, 1> grad_weight({width}), grad_bias({width});
  for (Index row = 0; row < c.rows; ++row) {
    Real mean = 0, square = 0;
    for (Index i = 0; i < width; ++i) mean += c.centered ? static_cast<Real>(c.x(row, i)) / n : 0;
    for (Index i = 0; i < width; ++i) square += std::pow(c.x(row, i) - mean, Real{2}) / n;
    const Real factor = 1 / std::sqrt(square + static_cast<Real>(static_cast<T>(1e-5)));
    const double bound = u * static_cast<double>((20 + n) * (1 + factor));
    ASSERT_NEAR(static_cast<double>(c.factors[row]), static_cast<double>(factor),
                static_cast<double>(factor) * bound);
    Real mean_h = 0, slope = 0;
    const auto normal = [&](Index i) { return (static_cast<Real>(c.x(row, i)) - mean) * factor; };
    const auto h = [&](Index i) { return static_cast<Real>(c.grad(row, i)) * c.weight[i]; };
    for (Index i = 0; i < width; ++i) {
      mean_h += c.centered ? h(i) / n : 0;
      slope += h(i) * normal(i) / n;
      grad_weight[i] += static_cast<double>(c.grad(row, i) * normal(i));
      grad_bias[i] += static_cast<double>(c.grad(row, i));
    }
    for (Index i = 0; i < width; ++i) {
      const Real y = normal(i) * c.weight[i] + (with_bias ? c.bias[i] : 0);
      ASSERT_NEAR(static_cast<double>(c.y(row, i)), static_cast<double>(y), 8 * bound);
      const Real gradient = factor * (h(i) - mean_h - normal(i) * slope);
      ASSERT_NEAR(static_cast<double>(c.grad_x(row, i)), static_cast<double>(gradient),
                  8 * bound * static_cast<double>(1 + factor));
      if (row + 1 < c.rows) continue;
      ASSERT_NEAR(static_cast<double>(c.grad_weight[i]), grad_weight[i], 8 * bound);
      if (with_bias) {
        ASSERT_NEAR(static_cast<double>(c.grad_bias[i]), grad_bias[i], 8 * bound);
      }
    }
  }
}

template <class T>
void check_widths(double u) {
  std::mt19937_64 bits(7);
  for (Index width = 1; width <= 150; width += width < 40 ? 1 : 11) {
    for (const bool with_bias : {false, true}) {
      NormCase<T> norm(3, width, with_bias || width % 2 == 0, bits);
      norm.run(with_bias);
      SCOPED_TRACE(width);
      expect_the_formulas(norm, with_bias, u);
    }
  }
}

TEST_P(NormKernels, RowsOfEveryWidth) {
  check_widths<float>(0x1p-24);
  check_widths<double>(0x1p-53);
}

TEST_P(NormKernels, ARowAloneHasTheSameBits) {
  std::mt19937_64 bits(8);
  constexpr Index width = 77, of_nan = 3;
  NormCase<float> all(9, width, true, bits);
  for (Index i = 0; i < width; ++i) all.x(1, i) += 100000;  // whose mean is found in two passes
  std::fill_n(&all.x(of_nan, 0), width, std::numeric_limits<float>::quiet_NaN());
  std::fill_n(&all.grad(5, 0), width, 0.0f);
  all.run(true);
  for (Index row = 0; row < all.rows; ++row) {
    if (row == of_nan) continue;
    NormCase<float> one(1, width, true, bits);
    one.weight = all.weight;
    one.bias = all.bias;
    std::copy_n(&all.x(row, 0), width, one.x.data());
    std::copy_n(&all.grad(row, 0), width, one.grad.data());
    one.run(true);
    SCOPED_TRACE(row);
    EXPECT_EQ(one.factors[0], all.factors[row]);
    EXPECT_EQ(std::memcmp(one.y.data(), &all.y(row, 0), width * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(one.grad_x.data(), &all.grad_x(row, 0), width * sizeof(float)), 0);
  }
}

TEST_P(NormKernels, RowsWithoutGradientAreAbsentWhateverTheyHold) {
  std::mt19937_64 bits(9);
  NormCase<double> norm(4, 37, true, bits);
  std::fill_n(&norm.grad(2, 0), 37, 0.0);
  norm.run(true);
  const auto weight = norm.grad_weight, bias = norm.grad_bias;
  std::fill_n(&norm.x(2, 0), 37, std::numeric_limits<double>::quiet_NaN());
  norm.grad_weight = Tensor<double, 1>({37});
  norm.grad_bias = Tensor<double, 1>({37});
  norm.run(true);
  EXPECT_TRUE(same_bits(norm.grad_weight, weight));
  EXPECT_TRUE(same_bits(norm.grad_bias, bias));
  for (Index i = 0; i < 37; ++i) EXPECT_EQ(norm.grad_x(2, i), 0);
}

TEST_P(NormKernels, OutputAlone) {
  std::mt19937_64 bits(10);
  NormCase<float> norm(3, 50, false, bits);
  norm.run(false);
  Tensor<float, 2> y({3, 50});
  simd::norm_kernels<float>().forward(
      {50, norm.weight.data(), nullptr, static_cast<float>(1e-5), false}, 3, norm.x.data(), nullptr,
      nullptr, y.data());
  EXPECT_TRUE(same_bits(y, norm.y));
}

INSTANTIATE_TEST_SUITE_P(Sets, NormKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
