// SPDX-License-Identifier: MIT
#include <heed/models/model_ends.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

TEST(TokenInput, AddsPositionsToScaledEmbeddings) {
  Random random(1);
  const TokenInput<double> learned({.vocab_size = 5,
                                    .model_dim = 2,
                                    .positions = PositionKind::learned,
                                    .max_length = 4,
                                    .factor = 3},
                                   random);
  const auto x = learned.forward(Tokens({1, 2}, {4, 1}), 2);
  EXPECT_DOUBLE_EQ(x(0, 1, 1),
                   3 * learned.embedding.weight(1, 1) + learned.positions->weight(3, 1));
  const TokenInput<double> sinusoidal(
      {.vocab_size = 5, .model_dim = 2, .positions = PositionKind::sinusoidal}, random);
  EXPECT_DOUBLE_EQ(sinusoidal.forward(Tokens({1, 1}, {3}), 9)(0, 0, 0),
                   sinusoidal.embedding.weight(3, 0) + std::sin(9.0));
  EXPECT_EQ(parameter_names(sinusoidal), std::vector<std::string>{"embedding.weight"});
  const TokenInput<double> plain({.vocab_size = 5, .model_dim = 2}, random);
  EXPECT_EQ(plain.forward(Tokens({1, 1}, {3}), 9)(0, 0, 0), plain.embedding.weight(3, 0));
}

TEST(TokenInput, GradientsReachTableAndPositions) {
  Random random(2);
  const TokenInput<double> input({.vocab_size = 5,
                                  .model_dim = 1,
                                  .positions = PositionKind::learned,
                                  .max_length = 2,
                                  .factor = 3},
                                 random);
  TokenInput<double>::Saved saved;
  input.forward(Tokens({2, 2}, {4, 1, 4, 4}), Noise{}, saved);
  auto gradients = zeros_like(input);
  input.backward(Tensor<double, 3>({2, 2, 1}, {1, 2, 3, 4}), saved, gradients);
  EXPECT_EQ(gradients.embedding.weight(4, 0), 3 * (1 + 3 + 4));
  EXPECT_EQ(gradients.embedding.weight(1, 0), 3 * 2);
  EXPECT_EQ(gradients.positions->weight(0, 0), 1 + 3);
  EXPECT_EQ(gradients.positions->weight(1, 0), 2 + 4);
}

TEST(TokenInput, AnyFactorActs) {
  for (const double factor : {0.5, 1.0, 2.0, 3.0}) {
    Random random(3);
    const TokenInput<double> input({.vocab_size = 5, .model_dim = 2, .factor = factor}, random);
    const auto x = input.forward(Tokens({1, 1}, {3}));
    EXPECT_EQ(x(0, 0, 1), factor * input.embedding.weight(3, 1)) << factor;
  }
}

TEST(OutputHead, TiedIsTheTableTransposed) {
  Random random(1);
  const Embedding<double> embedding({.vocab_size = 5, .dim = 3}, random);
  const OutputHead<double> tied(3, 5, true, random);
  EXPECT_TRUE(parameter_count(tied) == 0);
  std::mt19937_64 bits(2);
  const auto x = random_tensor<double, 3>({2, 2, 3}, bits);
  OutputHead<double>::Saved saved;
  const auto logits = tied.forward(x, embedding, saved);
  for (Index v = 0; v < 5; ++v) {
    double sum = 0;
    for (Index d = 0; d < 3; ++d) sum += x(1, 0, d) * embedding.weight(v, d);
    EXPECT_NEAR(logits(1, 0, v), sum, 1e-15);
  }
  auto table = embedding;
  auto packed = tied;
  packed.pack(table);
  EXPECT_FALSE(table.packed.empty());
  EXPECT_TRUE(same_bits(packed.forward(x, table), logits));
  auto grad_embedding = zeros_like(embedding);
  OutputHead<double> none;
  const auto grad_x = tied.backward(logits, embedding, saved, none, grad_embedding);
  double from_x = 0, from_weight = 0, squares = 0;  // both are Σ logits²
  for (Index i = 0; i < x.size(); ++i) from_x += grad_x.data()[i] * x.data()[i];
  for (Index i = 0; i < 15; ++i) {
    from_weight += grad_embedding.weight.data()[i] * embedding.weight.data()[i];
  }
  for (const double value : logits) squares += value * value;
  EXPECT_NEAR(from_x, squares, 1e-12);
  EXPECT_NEAR(from_weight, squares, 1e-12);
}

TEST(OutputHead, TiedInBfloat16IsALinearOfTheTable) {
  Random random(2);
  Embedding<float> embedding({.vocab_size = 70, .dim = 33}, random);
  OutputHead<float> tied(33, 70, true, random), none;
  Linear<float> linear({.inputs = 33, .outputs = 70, .bias = false}, random);
  linear.weight = embedding.weight;
  set_products(tied, Products::bfloat16);
  set_products(linear, Products::bfloat16);
  std::mt19937_64 bits(3);
  const auto x = random_tensor<float, 3>({2, 5, 33}, bits);
  OutputHead<float>::Saved saved;
  Linear<float>::Saved saved_linear;
  const auto logits = tied.forward(x, embedding, saved);
  EXPECT_TRUE(same_bits(logits, linear.forward(x, saved_linear)));
  auto grad_embedding = zeros_like(embedding);
  auto gradients = zeros_like(linear);
  EXPECT_TRUE(same_bits(tied.backward(logits, embedding, saved, none, grad_embedding),
                        linear.backward(logits, saved_linear, gradients)));
  EXPECT_TRUE(same_bits(grad_embedding.weight, gradients.weight));
  tied.pack(embedding);
  EXPECT_TRUE(embedding.packed.is_quantized());
  EXPECT_TRUE(same_bits(tied.forward(x, embedding), logits));
  set_products(tied, Products::exact);
  EXPECT_TRUE(same_bits(tied.forward(x, embedding),
                        OutputHead<float>(33, 70, true, random).forward(x, embedding)));
}

TEST(OutputHead, ItsOwnWeightHasAName) {
  Random random(1);
  OutputHead<float> head(3, 5, false, random);
  EXPECT_EQ(parameter_names(head), std::vector<std::string>{"weight"});
  head.initialize(0, random);
  for (const float value : head.own->weight) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace heed::test
