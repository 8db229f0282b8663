// SPDX-License-Identifier: MIT
#include <heed/models/model_ends.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

TEST(OutputHead, TiedIsTheTableTransposed) {
  Random random(1);
  const Embedding<double> embedding({.vocab_size = 5, .dim = 3}, random);
  OutputHead<double> tied(3, 5, true, random);
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
  auto packed = tied;
  packed.pack(embedding);
  EXPECT_TRUE(same_bits(packed.forward(x, embedding), logits));
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

TEST(OutputHead, ItsOwnWeightHasAName) {
  Random random(1);
  OutputHead<float> head(3, 5, false, random);
  EXPECT_EQ(parameter_names(head), std::vector<std::string>{"weight"});
  head.initialize(0, random);
  for (const float value : head.own->weight) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace heed::test
