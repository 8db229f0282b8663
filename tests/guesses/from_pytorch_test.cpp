// SPDX-License-Identifier: MIT
// The right column of "Names from PyTorch" in docs/00-quickstart.md, row by row: each compiles as
// it is written there, and does what the left column says.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <heed/heed.hpp>
#include <heed/ostream.hpp>
#include <heed/pretrained.hpp>

using namespace heed;

namespace {

Tensor<float, 4> normal(const Extents<4>& extents, Random& random) {
  Tensor<float, 4> x(extents);
  for (float& value : x) value = random.normal<float>();
  return x;
}

TEST(NamesFromPyTorch, Tensors) {
  Tensor<float, 2> x(2, 3);
  EXPECT_EQ((Tensor<float, 2>{{1, 2}})(0, 1), 2);
  EXPECT_EQ(x.shape()[0], 2);
  EXPECT_EQ(x.extent(0), 2);
  EXPECT_EQ(x.size(), 6);
  x[0].fill(1);
  x(0, 1) = 4;
  EXPECT_EQ(x.slice(1, 1, 3)(0, 0), 4);
  EXPECT_EQ(x.transpose()(1, 0), 4);
  EXPECT_EQ((Tensor<double, 2>(x)(0, 1)), 4.0);
  EXPECT_EQ(static_cast<float>(Tensor<bfloat16, 2>(x)(0, 1)), 4.0f);
  EXPECT_EQ(matrix_product(x, x.transpose())(0, 0), 18);
  EXPECT_NEAR(softmax(x)(1, 0), 1 / 3.0, 1e-6);
  std::ostringstream printed;
  printed << x;
  EXPECT_NE(printed.str().find('4'), std::string::npos);
  Tensor<float, 4> heads(1, 2, 3, 4);
  EXPECT_EQ(heads.view({4, 6}).extents(), (Extents<2>{4, 6}));
  EXPECT_EQ(heads.permute(0, 2, 1, 3).extents(), (Extents<4>{1, 3, 2, 4}));
}

TEST(NamesFromPyTorch, Attention) {
  Random random(1);
  const auto q = normal({1, 4, 5, 8}, random), k = normal({1, 2, 5, 8}, random);
  const auto causal = attention(q, k, k, masks::Causal{});
  Tensor<bool, 2> seen(5, 5);
  Tensor<float, 2> added(5, 5);
  for (Index i = 0; i < 5; ++i) {
    for (Index j = 0; j < 5; ++j) {
      seen(i, j) = j <= i;
      added(i, j) = j <= i ? 0 : -std::numeric_limits<float>::infinity();
    }
  }
  EXPECT_EQ(attention(q, k, k, masks::Dense(seen)), causal);
  EXPECT_EQ(attention(q, k, k, {.bias = added}), causal);
  const auto dropped =
      attention(q, k, k, masks::Causal{}, {.dropout = {.probability = 0.1f, .seed = 7}});
  EXPECT_NE(dropped, causal);
  const auto two = Tensor<float, 4>(q.slice(2, 0, 2));
  const auto top = attention(two, k, k, masks::Causal{}, {.first_query = top_left});
  EXPECT_EQ(top, (Tensor<float, 4>(causal.slice(2, 0, 2)))) << "the first sees the first";
  EXPECT_NE(top, attention(two, k, k, masks::Causal{})) << "the last sees the last";
  const Tensor<bool, 2> valid{{true, true, true, false, false}};
  EXPECT_EQ(attention(q, k, k, masks::ValidKeys(valid)), attention(q, k, k, masks::Padding({3})));
  const auto later = [](Index query, Index key) { return key <= query; };
  EXPECT_EQ(attention(q, k, k, later), causal);
  const auto halved = [](float score, Position) { return score / 2; };
  EXPECT_NE(attention(q, k, k, masks::Causal{}, {.score_function = halved}), causal);
  const std::vector<int> offsets = {0, 2, 5};
  const auto packed = packed_attention(q[0], k[0], k[0], offsets, masks::Causal{});
  EXPECT_EQ(packed.extents(), (Extents<3>{4, 5, 8}));
}

TEST(NamesFromPyTorch, Training) {
  Random random(1);
  Linear<float> layer(4, 2, random);
  const MultiHeadAttention<float> heads({.model_dim = 64, .heads = 8}, random);
  const Tensor<float, 2> x(3, 4);
  const Tensor<Index, 1> targets({3}, {0, 1, 1});
  Linear<float>::Saved saved;
  auto gradients = zeros_like(layer);
  AdamW optimizer(layer);
  set_zero(gradients);
  const auto [loss, grad] = cross_entropy(layer.forward(x, saved), targets);
  EXPECT_GT(loss, 0);
  layer.backward(grad, saved, gradients);
  clip_gradient_norm(gradients, 1);
  const auto before = layer.forward(x);
  optimizer.step(layer, gradients);
  EXPECT_NE(layer.forward(x), before);
  Dropout<float> dropout(0.5, random);
  Dropout<float>::Saved noise;
  const Tensor<float, 2> ones({2, 3}, {1, 1, 1, 1, 1, 1});
  EXPECT_EQ(dropout.forward(ones), ones);
  EXPECT_NE(dropout.forward(ones, Noise{.seed = 3}, noise), ones);
  std::vector<std::string> names;
  for_each_parameter([&](std::string_view name, auto&) { names.emplace_back(name); }, layer);
  EXPECT_EQ(names, (std::vector<std::string>{"weight", "bias"}));
  const std::string path = testing::TempDir() + "from_pytorch.safetensors";
  save_weights(path, layer);
  Linear<float> same(4, 2, random);
  load_weights(path, same);
  EXPECT_EQ(same.forward(x), layer.forward(x));
}

TEST(NamesFromPyTorch, Generation) {
  Random random(1);
  const LanguageModel<float> model({.vocab_size = 9, .block = {.model_dim = 8, .heads = 2}},
                                   random);
  Session<float> session(model);
  const auto first = generate(session, {1, 2}, {.max_tokens = 3}).tokens;
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(session.length(), 4) << "it goes on there: the last token is not read";
  session.clear();
  EXPECT_EQ(generate(session, {1, 2}, {.max_tokens = 3}).tokens, first);
}

TEST(NamesFromPyTorch, Files) {
  const Tensor<float, 2> x{{1, 2}, {3, 4}};
  const std::string npy = testing::TempDir() + "from_pytorch.npy";
  write_npy(npy, x);
  EXPECT_EQ((load_npy<float, 2>(npy)), x);
  Random random(1);
  Linear<float> layer(2, 3, random);
  AdamW optimizer(layer);
  const std::string path = testing::TempDir() + "from_pytorch_state.safetensors";
  save_weights(path, layer);
  const auto file = load_safetensors(path);
  EXPECT_EQ((file.tensor<float, 2>("weight")), layer.weight);
  save_checkpoint(path, layer, optimizer, TrainingState{});
  EXPECT_THROW(load_model<float>("/nowhere"), FileError);
}

}  // namespace
