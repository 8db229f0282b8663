// SPDX-License-Identifier: MIT
#include <heed/models/encoder.hpp>

#include <heed/masks.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

const EncoderOptions small = [] {
  auto options = EncoderOptions::bert({.model_dim = 6, .heads = 2});
  options.vocab_size = 7;
  options.max_length = 4;
  return options;
}();
const Tokens tokens({2, 4}, {1, 6, 0, 3, 2, 2, 5, 1}), kinds({2, 4}, {0, 0, 1, 1, 0, 1, 1, 1});

void expect_encoder_gradients(const EncoderOptions& options) {
  Random random(1);
  Encoder<double> model(options, random);
  scatter_parameters(model, 2);
  const Mask mask = masks::Padding({4, 3});
  Encoder<double>::Saved saved;
  const auto y = model.forward(tokens, mask, kinds, Noise{}, saved);
  std::mt19937_64 bits(3);
  const auto weights = random_tensor<double, 3>(y.extents(), bits);
  auto gradients = zeros_like(model);
  model.backward(weights, saved, gradients);
  EXPECT_TRUE(same_bits(y, model.forward(tokens, mask, kinds)));
  expect_parameter_gradients(
      model, gradients, [&] { return weighted_sum(model.forward(tokens, mask, kinds), weights); });
}

TEST(Encoder, GradientsAreRight) {
  expect_encoder_gradients(small);
  auto other = small;
  other.block.norm_before = true;
  other.block.model_dim = 8;
  other.segments = 0;
  other.embedding_norm = false;
  other.block.positions = PositionKind::rotary;
  expect_encoder_gradients(other);
  other.block.positions = PositionKind::relative;
  other.block.relative_reach = 2;
  expect_encoder_gradients(other);
}

TEST(Encoder, Names) {
  Random random(1);
  const auto names = parameter_names(Encoder<float>(small, random));
  const std::vector<std::string> first(names.begin(), names.begin() + 7);
  EXPECT_EQ(first, (std::vector<std::string>{
                       "embedding.weight", "positions.weight", "segments.weight",
                       "embedding_norm.weight", "embedding_norm.bias",
                       "blocks.0.attention_norm.weight", "blocks.0.attention_norm.bias"}));
  EXPECT_EQ(names.size(), 5u + 16u);
}

TEST(Encoder, WithoutSegmentsGivenAllAreTheFirst) {
  Random random(1);
  const Encoder<float> model(small, random);
  EXPECT_TRUE(same_bits(model.forward(tokens, masks::Full{}),
                        model.forward(tokens, masks::Full{}, Tokens({2, 4}))));
  EXPECT_FALSE(
      same_bits(model.forward(tokens, masks::Full{}), model.forward(tokens, masks::Full{}, kinds)));
  EXPECT_THROW(model.forward(tokens, masks::Full{}, Tokens({2, 3})), ShapeError);
}

TEST(Encoder, NeitherPaddingNorNeighborsChangeABit) {
  Random random(1);
  const Encoder<float> model(small, random);
  const auto batch = model.forward(tokens, masks::Padding({4, 2}));
  const auto alone = model.forward(Tokens({1, 2}, {2, 2}), masks::Full{});
  for (Index token = 0; token < 2; ++token) {
    for (Index i = 0; i < 6; ++i) EXPECT_EQ(batch(1, token, i), alone(0, token, i));
  }
}

}  // namespace
}  // namespace heed::test
