// SPDX-License-Identifier: MIT
#include <heed/layers/embedding.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

TEST(Embedding, TakesRowsAndGivesGradientsBackToThem) {
  Random random(1);
  const Embedding<float> layer({.vocab_size = 5, .dim = 3}, random);
  EXPECT_EQ(parameter_names(layer), std::vector<std::string>{"weight"});
  const Tokens tokens({2, 2}, {4, 0, 4, 2});
  Embedding<float>::Saved saved;
  const auto y = layer.forward(tokens, saved);
  for (Index d = 0; d < 3; ++d) EXPECT_EQ(y(1, 0, d), layer.weight(4, d));
  Tensor<float, 3> grad({2, 2, 3});
  for (Index i = 0; i < grad.size(); ++i) grad.data()[i] = static_cast<float>(i);
  auto gradients = zeros_like(layer);
  layer.backward(grad, saved, gradients);
  layer.backward(grad, saved, gradients);
  EXPECT_EQ(gradients.weight(4, 1), 2 * (1 + 7));
  EXPECT_EQ(gradients.weight(0, 0), 2 * 3);
  EXPECT_EQ(gradients.weight(1, 0), 0);
}

TEST(Embedding, RefusesTokensOutsideTheVocabulary) {
  Random random(2);
  const Embedding<float> layer({.vocab_size = 5, .dim = 3}, random);
  EXPECT_THROW(layer.forward(Tokens({1, 1}, {5})), InvalidArgument);
  EXPECT_THROW(layer.forward(Tokens({1, 1}, {-1})), InvalidArgument);
  EXPECT_THROW((Embedding<float>({.vocab_size = 0, .dim = 3}, random)), InvalidArgument);
  EXPECT_THROW((Embedding<float>({.vocab_size = 3, .dim = 0}, random)), InvalidArgument);
  EXPECT_NO_THROW((Embedding<float>({.vocab_size = 1, .dim = 1}, random)));
}

TEST(Embedding, StartsNormal) {
  Random random(3);
  const Embedding<double> layer({.vocab_size = 100, .dim = 100, .init_std = 0.02}, random);
  double squares = 0;
  for (const double value : layer.weight) squares += value * value;
  EXPECT_NEAR(std::sqrt(squares / 1e4), 0.02, 0.001);
}

TEST(LearnedPositions, KeepsTheLaws) {
  check_layer_laws(
      [](auto scalar) {
        Random random(1);
        return LearnedPositions<decltype(scalar)>({.max_length = 3, .dim = 5}, random);
      },
      {2, 3, 5}, {"weight"}, false);
}

TEST(LearnedPositions, CountsFromTheFirstPosition) {
  Random random(2);
  const LearnedPositions<float> layer({.max_length = 4, .dim = 2}, random);
  const auto y = layer.forward(Tensor<float, 3>({2, 2, 2}), 2);
  EXPECT_EQ(y(1, 0, 1), layer.weight(2, 1));
  EXPECT_EQ(y(0, 1, 0), layer.weight(3, 0));
  LearnedPositions<float>::Saved saved;
  layer.forward(Tensor<float, 3>({1, 1, 2}), saved, 2);
  auto gradients = zeros_like(layer);
  layer.backward(Tensor<float, 3>({1, 1, 2}, {5, 7}), saved, gradients);
  EXPECT_EQ(gradients.weight(2, 0), 5);
  EXPECT_EQ(gradients.weight(2, 1), 7);
  EXPECT_EQ(gradients.weight(0, 0) + gradients.weight(1, 0) + gradients.weight(3, 0), 0);
}

TEST(LearnedPositions, RefusesPositionsPastTheTable) {
  Random random(3);
  const LearnedPositions<float> layer({.max_length = 4, .dim = 2}, random);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 5, 2})), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 2}), 3), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 2}), -1), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 3})), ShapeError);
}

TEST(LearnedPositions, AddsTheRowOfEveryTokensPosition) {
  Random random(2);
  const LearnedPositions<double> layer({.max_length = 4, .dim = 2}, random);
  const Positions positions(Tensor<Index, 2>({2, 3}, {3, 0, 3, 1, 1, 2}));
  LearnedPositions<double>::Saved saved;
  const auto y = layer.forward(Tensor<double, 3>({2, 3, 2}), saved, positions);
  EXPECT_EQ(y(0, 2, 1), layer.weight(3, 1));
  EXPECT_EQ(y(1, 1, 0), layer.weight(1, 0));
  auto gradients = zeros_like(layer);
  Tensor<double, 3> grad({2, 3, 2});
  for (Index i = 0; i < 12; ++i) grad.data()[i] = static_cast<double>(i);
  layer.backward(grad, saved, gradients);
  const double sums[] = {2, 3, 6 + 8, 7 + 9, 10, 11, 0 + 4, 1 + 5};
  for (Index i = 0; i < 8; ++i) EXPECT_EQ(gradients.weight.data()[i], sums[i]) << i;
  const Tensor<double, 3> x({2, 3, 2});
  EXPECT_THROW(layer.forward(x, Positions(Tensor<Index, 2>({1, 3}, {0, 4, 1}))), ShapeError);
  EXPECT_THROW(layer.forward(x, Positions(Tensor<Index, 2>({3, 3}))), ShapeError);
}

TEST(SinusoidalPositions, KeepsTheLaws) {
  check_layer_laws([](auto scalar) { return SinusoidalPositions<decltype(scalar)>(); }, {2, 3, 5},
                   {}, false);
}

TEST(SinusoidalPositions, IsTheFormula) {
  const SinusoidalPositions<double> layer;
  const auto rows = layer.table(3, 6, 7);
  for (Index p = 0; p < 3; ++p) {
    for (Index i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(p + 7) / std::pow(10000, static_cast<double>(i) / 3);
      EXPECT_NEAR(rows(p, 2 * i), std::sin(angle), 1e-14);
      EXPECT_NEAR(rows(p, 2 * i + 1), std::cos(angle), 1e-14);
    }
  }
  const auto y = layer.forward(Tensor<double, 3>({2, 3, 6}), 7);
  for (Index i = 0; i < 18; ++i) EXPECT_EQ(y.data()[18 + i], rows.data()[i]);
}

TEST(SinusoidalPositions, AreThoseOfEveryToken) {
  const SinusoidalPositions<double> layer;
  for (const Index last : {5, 1000000}) {  // a table of all, or a row for each
    const Positions positions(Tensor<Index, 2>({2, 3}, {3, 0, 3, 1, last, 2}));
    const auto y = layer.forward(Tensor<double, 3>({2, 3, 6}), positions);
    for (Index i = 0; i < 6; ++i) {
      const auto row = layer.table(1, 6, positions.at(i / 3, i % 3));
      for (Index d = 0; d < 6; ++d) EXPECT_EQ(y.data()[6 * i + d], row(0, d)) << last;
    }
  }
  const Tensor<double, 3> x({2, 3, 6});
  EXPECT_THROW(layer.forward(x, Positions(Tensor<Index, 2>({2, 2}))), ShapeError);
}

}  // namespace
}  // namespace heed::test
