// SPDX-License-Identifier: MIT
#include <heed/models/encoder.hpp>

#include <limits>
#include <vector>

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
  const auto of_tokens = options.segments > 0 ? kinds : Tokens();
  const auto y = model.forward(tokens, mask, of_tokens, Noise{}, saved);
  std::mt19937_64 bits(3);
  const auto weights = random_tensor<double, 3>(y.extents(), bits);
  auto gradients = zeros_like(model);
  model.backward(weights, saved, gradients);
  EXPECT_TRUE(same_bits(y, model.forward(tokens, mask, of_tokens)));
  expect_parameter_gradients(model, gradients, [&] {
    return weighted_sum(model.forward(tokens, mask, of_tokens), weights);
  });
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

/// Texts of many lengths back to back, each with the bits of a call by itself.
void expect_packed_as_alone(EncoderOptions options, PositionKind positions) {
  options.max_length = 150;
  options.block.model_dim = 8;
  options.block.positions = positions;
  Random random(1);
  Encoder<float> model(options, random);
  scatter_parameters(model, 2);
  const std::vector<Index> offsets = {0, 3, 3, 4, 21, 171, 175};
  Tokens packed({1, offsets.back()});
  for (Index i = 0; i < packed.size(); ++i) packed(0, i) = i * i % options.vocab_size;
  for (const Mask& mask : {Mask(masks::Full{}), Mask(masks::Causal{})}) {
    const auto together = model.forward_packed(packed, offsets, mask);
    for (std::size_t text = 0; text + 1 < offsets.size(); ++text) {
      const Index first = offsets[text], end = offsets[text + 1];
      const auto alone = model.forward(Tokens::copy_of(packed.view().slice(1, first, end)), mask);
      EXPECT_TRUE(same_bits(alone, Tensor<float, 3>::copy_of(together.view().slice(1, first, end))))
          << "text " << text << ", positions " << static_cast<int>(positions);
    }
  }
}

TEST(Encoder, PackedTextsHaveTheBitsOfEachAlone) {
  for (const auto positions : {PositionKind::learned, PositionKind::rotary, PositionKind::relative,
                               PositionKind::sinusoidal, PositionKind::alibi}) {
    expect_packed_as_alone(small, positions);
  }
  auto before = small;
  before.block.norm_before = true;
  expect_packed_as_alone(before, PositionKind::learned);
}

TEST(Encoder, PackedTextsMustFit) {
  Random random(1);
  const Encoder<float> model(small, random);
  EXPECT_THROW(model.forward_packed(tokens, {0, 4}), ShapeError) << "a batch of two";
  const Tokens row({1, 4}, {1, 6, 0, 3});
  EXPECT_THROW(model.forward_packed(row, {0, 3}), ShapeError);
  EXPECT_THROW(model.forward_packed(row, {0, 3, 2, 4}), ShapeError);
  EXPECT_THROW(model.forward_packed(row, {1, 4}), ShapeError);
  const std::vector<Index> queries = {0, 2, 4}, keys = {0, 3, 4};
  EXPECT_THROW(model.forward_packed(row, {queries, keys}), ShapeError) << "texts see themselves";
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

TEST(Pooling, MeansOverWhatCounts) {
  Tensor<double, 3> x({3, 2, 2}, {1, 2, 3, 6, 5, 6, 7, 8, 9, 9, 9, 9});
  x(1, 1, 0) = std::numeric_limits<double>::quiet_NaN();  // behind the length: not looked at
  const std::vector<Index> lengths = {2, 1, 0};
  const auto means = mean_pool(x, lengths);
  const std::vector<double> expected = {2, 4, 5, 6, 0, 0};
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(means.data()[i], expected[static_cast<std::size_t>(i)]);
  const auto grad = mean_pool_backward(means, lengths, 2);
  const std::vector<double> back = {1, 2, 1, 2, 5, 6, 0, 0, 0, 0, 0, 0};
  for (Index i = 0; i < 12; ++i) EXPECT_EQ(grad.data()[i], back[static_cast<std::size_t>(i)]);
}

TEST(Pooling, RefusesLengthsThatDoNotFit) {
  const Tensor<float, 3> x({2, 3, 1});
  EXPECT_THROW(mean_pool(x, std::vector<Index>{1}), ShapeError);
  EXPECT_THROW(mean_pool(x, std::vector<Index>{1, 4}), ShapeError);
  EXPECT_THROW(mean_pool(x, std::vector<Index>{-1, 1}), ShapeError);
}

}  // namespace
}  // namespace heed::test
