// SPDX-License-Identifier: MIT
#include <heed/models/encoder_decoder.hpp>

#include <heed/masks.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

const EncoderDecoderOptions small{.source_vocab_size = 5,
                                  .target_vocab_size = 7,
                                  .decoder_layers = 2,
                                  .block = {.model_dim = 6,
                                            .heads = 2,
                                            .hidden_dim = 5,
                                            .activation = ActivationKind::gelu,
                                            .norm_before = false,
                                            .positions = PositionKind::sinusoidal}};
const Tokens source({2, 4}, {1, 4, 0, 3, 2, 2, 0, 0}), target({2, 3}, {1, 6, 0, 3, 2, 5});

EncoderDecoderMasks some_masks() {
  const Mask padding = masks::Padding({4, 2});
  return {padding, masks::Causal{}, padding};
}

void expect_all_gradients(const EncoderDecoderOptions& options) {
  Random random(1);
  EncoderDecoder<double> model(options, random);
  scatter_parameters(model, 2);
  const auto masks = some_masks();
  EncoderDecoder<double>::Saved saved;
  const auto logits = model.forward(source, target, masks, saved);
  std::mt19937_64 bits(3);
  const auto weights = random_tensor<double, 3>(logits.extents(), bits);
  auto gradients = zeros_like(model);
  model.backward(weights, saved, gradients);
  EXPECT_TRUE(same_bits(logits, model.forward(source, target, masks)));
  expect_parameter_gradients(model, gradients, [&] {
    return weighted_sum(model.forward(source, target, masks), weights);
  });
}

TEST(EncoderDecoder, GradientsAreRight) {
  expect_all_gradients(small);
  auto other = small;
  other.block.norm_before = true;
  other.tied_head = true;
  other.block.positions = PositionKind::learned;
  other.max_length = 4;
  other.decoder_layers = 1;
  expect_all_gradients(other);
  other.block.positions = PositionKind::relative;
  other.block.relative_reach = 2;
  expect_all_gradients(other);
}

TEST(EncoderDecoder, OptionsReachEncoderInputAndBlocks) {
  Random random(1);
  const EncoderDecoder<float> model({.source_vocab_size = 5,
                                     .target_vocab_size = 7,
                                     .encoder_layers = 3,
                                     .block = {.model_dim = 16,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .positions = PositionKind::rotary,
                                               .rotary = {.base = 7},
                                               .dropout = 0.1}},
                                    random);
  EXPECT_EQ(model.encoder.options.vocab_size, 5);
  EXPECT_EQ(model.encoder.blocks.size(), 3u);
  EXPECT_EQ(model.encoder.input.factor, 4);
  EXPECT_EQ(model.encoder.options.init_std, 0.25) << "embeddings start at about 1";
  EXPECT_EQ(model.encoder.dropout.probability, 0.1);
  EXPECT_EQ(model.input.embedding.weight.extent(0), 7);
  EXPECT_EQ(model.input.factor, 4);
  for (const auto* attention : {&model.encoder.blocks[0].attention, &model.blocks[0].attention}) {
    EXPECT_TRUE(attention->rotary.has_value());
    EXPECT_EQ(attention->options.kv_heads, 2);
    EXPECT_EQ(attention->options.rotary.base, 7);
  }
  EXPECT_FALSE(model.blocks[0].cross_attention.rotary.has_value());
}

TEST(EncoderDecoder, TheOriginalsPreset) {
  const auto options = EncoderDecoderOptions::original({.model_dim = 8});
  EXPECT_EQ(options.block.model_dim, 8);
  EXPECT_EQ(options.block.positions, PositionKind::sinusoidal);
  EXPECT_EQ(options.block.activation, ActivationKind::relu);
  EXPECT_FALSE(options.block.norm_before || options.tied_head);
}

TEST(EncoderDecoder, Names) {
  Random random(1);
  const auto names = parameter_names(EncoderDecoder<float>(small, random));
  EXPECT_EQ(names.front(), "encoder.embedding.weight");
  EXPECT_EQ(names[1], "encoder.blocks.0.attention_norm.weight");
  EXPECT_EQ(names[17], "embedding.weight");
  EXPECT_EQ(names[18], "blocks.0.attention_norm.weight");
  EXPECT_EQ(names.back(), "head.weight");
  EXPECT_EQ(names.size(), 1u + 16u + 1u + 2u * 26u + 1u);
}

TEST(EncoderDecoder, TheSourceIsReadOnceForManySteps) {
  Random random(1);
  EncoderDecoder<float> model(small, random);
  const auto masks = some_masks();
  const auto whole = model.forward(source, target, masks);
  model.pack();
  const auto memory = model.remember(model.encode(source, masks.source));
  for (const Index length : {1, 2, 3}) {
    const auto step =
        model.decode(Tokens::copy_of(target.view().slice(1, 0, length)), memory, masks);
    const auto expected = Tensor<float, 3>::copy_of(whole.view().slice(1, 0, length));
    EXPECT_TRUE(same_bits(step, expected)) << length;
  }
  EXPECT_THROW(model.decode(target, {}, masks), ShapeError);
}

TEST(EncoderDecoder, PaddingOfTheSourceChangesNoBit) {
  Random random(1);
  const EncoderDecoder<float> model(small, random);
  auto other = source;
  other(1, 2) = 4;
  other(1, 3) = 1;
  EXPECT_TRUE(same_bits(model.forward(source, target, some_masks()),
                        model.forward(other, target, some_masks())));
}

}  // namespace
}  // namespace heed::test
