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

}  // namespace
}  // namespace heed::test
