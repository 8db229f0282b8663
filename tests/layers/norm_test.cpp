// SPDX-License-Identifier: MIT
#include <heed/layers/norm.hpp>

#include "laws/any_rank.hpp"

namespace heed::test {
namespace {

auto maker(const NormOptions& options) {
  return [options](auto scalar) { return Norm<decltype(scalar)>(options); };
}

TEST(Norm, KeepsTheLawsAsEitherKind) {
  for (const Index dim : {3, 6, 37}) {
    check_layer_laws(maker({.dim = dim}), {2, 3, dim}, {"weight", "bias"});
  }
  check_layer_laws(maker({.dim = 5, .bias = false}), {1, 2, 5}, {"weight"});
  check_layer_laws(maker({.kind = NormKind::rms, .dim = 9}), {2, 3, 9}, {"weight"});
}

TEST(Norm, TakesRowsOfAnyRankAsEitherKind) {
  expect_any_rank(LayerNorm<float>(37), 37);
  expect_any_rank(RMSNorm<float>(37), 37);
}

TEST(Norm, ConstantRowsAreTheBias) {
  // The mean of 768 equal numbers is rounded, and 1 / √ε magnifies that.
  for (const Index dim : {3, 37, 768}) {
    for (const float value : {1.f / 3, 1001.f, 4096.1f, 7777.77f, -123456.7f}) {
      Tensor<float, 2> x({1, dim});
      x.fill(value);
      LayerNorm<float> norm(dim);
      norm.bias->fill(2);
      for (const float y : norm.forward(x)) EXPECT_NEAR(y, 2, 1e-4) << value << ' ' << dim;
      x(0, 0) += 1;  // beside a large mean, a small difference
      const auto y = norm.forward(x);
      const double share = 1 / static_cast<double>(dim);
      const double step = double{x(0, 0)} - double{x(0, 1)};
      const double deviation = std::sqrt(step * step * share * (1 - share) + 1e-5);
      const double rounding = 1e-3 + std::fabs(value) * 6e-8 / deviation;  // the mean is a float
      EXPECT_NEAR(y(0, 0), 2 + step * (1 - share) / deviation, rounding) << value << ' ' << dim;
      EXPECT_NEAR(y(0, 1), 2 - step * share / deviation, rounding) << value << ' ' << dim;
    }
  }
}

TEST(Norm, ARowHasTheSameBitsInAnyShape) {
  const Norm<double> norm({.dim = 4});
  std::mt19937_64 bits(1);
  const auto x = random_tensor<double, 3>({2, 3, 12}, bits);  // heads of 4 side by side
  const auto heads = x.view().split(2, 4);
  Norm<double>::Saved saved, saved_head;
  const auto y = norm.forward(heads, saved);
  auto gradients = zeros_like(norm), short_backward = gradients;
  const auto grad_x = norm.backward(heads, saved, gradients);
  for (Index head = 0; head < 3; ++head) {
    const auto of_head = [&](const Tensor<double, 4>& all) {
      return Tensor<double, 3>::copy_of(all.view().select(2, head));
    };
    const auto x_of_head = Tensor<double, 3>::copy_of(heads.select(2, head));
    EXPECT_TRUE(same_bits(norm.forward(x_of_head, saved_head), of_head(y))) << head;
    EXPECT_TRUE(same_bits(norm.backward(x_of_head, saved_head, short_backward), of_head(grad_x)))
        << head;
  }
  for (Index i = 0; i < 4; ++i) EXPECT_NEAR(gradients.weight[i], short_backward.weight[i], 1e-12);
}

TEST(Norm, TheNamedKindsAreTheSameNorms) {
  std::mt19937_64 bits(2);
  const auto x = random_tensor<float, 3>({2, 3, 8}, bits);
  const LayerNorm<float> layer(8);
  const RMSNorm<float> rms(8);
  EXPECT_TRUE(same_bits(layer.forward(x), Norm<float>({.dim = 8}).forward(x)));
  EXPECT_TRUE(same_bits(
      rms.forward(x), Norm<float>({.kind = NormKind::rms, .dim = 8, .epsilon = 1e-6}).forward(x)));
  EXPECT_FALSE(LayerNorm<float>(8, 1e-5, false).bias || rms.bias);
  EXPECT_EQ(RMSNorm<float>().kind, NormKind::rms);
  const Norm<float> held = rms;  // as a block holds it
  EXPECT_TRUE(same_bits(held.forward(x), rms.forward(x)));
}

TEST(LayerNorm, BringsRowsToMeanZeroAndVarianceOne) {
  const LayerNorm<double> layer(4, 0);
  const auto y = layer.forward(Tensor<double, 3>({1, 1, 4}, {1, 2, 3, 6}));
  double sum = 0, squares = 0;
  for (const double value : y) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum, 0, 1e-15);
  EXPECT_NEAR(squares, 4, 1e-14);
}

TEST(LayerNorm, AConstantRowIsZero) {
  const LayerNorm<float> layer(3);
  for (const float value : layer.forward(Tensor<float, 3>({1, 1, 3}, {7, 7, 7})))
    EXPECT_EQ(value, 0);
}

TEST(RMSNorm, BringsRowsToMeanSquareOne) {
  const RMSNorm<double> layer(2, 0);
  const auto y = layer.forward(Tensor<double, 3>({1, 1, 2}, {3, 4}));
  EXPECT_NEAR(y(0, 0, 0), 3 / std::sqrt(12.5), 1e-15);
  EXPECT_NEAR(y(0, 0, 1), 4 / std::sqrt(12.5), 1e-15);
}

TEST(Norm, AResidualIsAddedToTheGradientBitForBit) {
  const RestoreSettings restore;
  std::mt19937_64 bits(4);
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    for (const auto kind : {NormKind::layer, NormKind::rms}) {
      for (const Index dim : {1, 7, 16, 37, 128}) {
        const Norm<float> norm({.kind = kind, .dim = dim});
        Norm<float>::Saved saved;
        norm.forward(random_tensor<float, 3>({2, 3, dim}, bits), saved);
        auto grad = random_tensor<float, 3>({2, 3, dim}, bits);
        for (Index i = 0; i < dim; ++i) grad(1, 1, i) = 0;
        auto residual = random_tensor<float, 3>({2, 3, dim}, bits);
        residual(1, 1, 0) = -0.f;
        auto gradients = zeros_like(norm), same = gradients;
        auto sum = residual;
        sum += norm.backward(grad, saved, gradients);
        EXPECT_TRUE(same_bits(norm.backward(grad, saved, same, residual), sum))
            << simd::name(isa) << ' ' << dim;
        EXPECT_TRUE(same_bits(gradients.weight, same.weight));
        EXPECT_THROW(norm.backward(grad, saved, same, Tensor<float, 3>({1, 6, dim})), ShapeError);
      }
    }
  }
}

TEST(Norm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(LayerNorm<float>(3).forward(Tensor<float, 3>({1, 2, 4})), ShapeError);
  EXPECT_THROW(LayerNorm<float>(0), InvalidArgument);
  for (const double none : {-1.0, double{NAN}, double{INFINITY}, 1e300}) {
    EXPECT_THROW(LayerNorm<float>(3, none), InvalidArgument) << none;
  }
  EXPECT_NO_THROW(LayerNorm<double>(3, 1e300));
  try {
    RMSNorm<float>(3).forward(Tensor<float, 3>({1, 2, 4}));
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "RMSNorm: x is (1, 2, 4), expected 3 as the last extent");
  }
  LayerNorm<float> layer(3), gradients(3);
  LayerNorm<float>::Saved saved;
  layer.forward(Tensor<float, 2>({4, 3}), saved);
  EXPECT_THROW(layer.backward(Tensor<float, 2>({5, 3}), saved, gradients), ShapeError);
}

}  // namespace
}  // namespace heed::test
