// SPDX-License-Identifier: MIT
#include <heed/models/language_model.hpp>

#include <heed/masks.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/encoder_decoder.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

const Tokens tokens({2, 4}, {1, 6, 0, 3, 2, 2, 5, 1});

/// Rows of weights add up to 1, and are 0 where the mask sees nothing.
void expect_weights(const Tensor<double, 4>& weights, const Mask& mask, const Extents<4>& extents) {
  ASSERT_EQ(weights.extents(), extents);
  for (Index item = 0; item < extents[0]; ++item) {
    for (Index head = 0; head < extents[1]; ++head) {
      for (Index query = 0; query < extents[2]; ++query) {
        double sum = 0;
        for (Index key = 0; key < extents[3]; ++key) {
          sum += weights(item, head, query, key);
          if (!allows(mask, {item, head, query, key})) {
            EXPECT_EQ(weights(item, head, query, key), 0);
          }
        }
        EXPECT_NEAR(sum, 1, 1e-12);
      }
    }
  }
}

TEST(AttentionOf, WeightsOfALayerOfALanguageModel) {
  LanguageModelOptions options;
  options.vocab_size = 7;
  options.block.model_dim = 6;
  options.block.heads = 2;
  options.layers = 2;
  options.max_length = 5;
  Random random(1);
  LanguageModel<double> model(options, random);
  scatter_parameters(model, 2);
  const Mask mask = masks::Causal{};
  expect_weights(attention_of(model, tokens, mask, 0), mask, {2, 2, 4, 4});
  const auto weights = attention_of(model, tokens, mask, 1);
  expect_weights(weights, mask, {2, 2, 4, 4});
  // The weights on the values give what attention gives.
  auto x = model.blocks[0].forward(model.input.forward(tokens), mask);
  const auto& block = model.blocks[1];
  block.forward_around(std::move(x), [&](const Tensor<double, 3>& in) {
    const auto out = block.attention.forward(in, mask);
    const auto parts = block.attention.inputs(in, in, in);
    Tensor<double, 3> context({2, 4, 6});
    for (Index item = 0; item < 2; ++item) {
      for (Index query = 0; query < 4; ++query) {
        for (Index d = 0; d < 6; ++d) {
          for (Index key = 0; key < 4; ++key) {
            context(item, query, d) +=
                weights(item, d / 3, query, key) * parts.values(item, key, d);
          }
        }
      }
    }
    const auto expected = block.attention.out.forward(context);
    for (Index i = 0; i < out.size(); ++i) EXPECT_NEAR(out.data()[i], expected.data()[i], 1e-12);
    return in;
  });
  try {
    attention_of(model, tokens, mask, 2);
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "attention_of: layer 2 of 2");
  }
  EXPECT_THROW(attention_of(model, tokens, mask, -1), ShapeError);
}

TEST(AttentionOf, WeightsOfALayerOfAnEncoder) {
  auto options = EncoderOptions::bert();
  options.vocab_size = 7;
  options.block.model_dim = 6;
  options.block.heads = 3;
  options.layers = 2;
  options.max_length = 5;
  Random random(1);
  const Encoder<double> model(options, random);
  const Mask mask = masks::Padding({4, 3});
  expect_weights(attention_of(model, tokens, mask, 1), mask, {2, 3, 4, 4});
}

/// All layers at once are each layer alone, bit for bit.
template <class Model, class... More>
void expect_layers(const Tensor<double, 5>& all, const Model& model, const Tokens& some,
                   const Mask& mask, const More&... more) {
  ASSERT_EQ(all.extent(0), static_cast<Index>(model.blocks.size()));
  for (Index layer = 0; layer < all.extent(0); ++layer) {
    const auto one = attention_of(model, some, mask, layer, more...);
    const auto same = Tensor<double, 4>::copy_of(all.view().select(0, layer));
    EXPECT_TRUE(same_bits(one, same)) << layer;
  }
}

TEST(AttentionOf, AllLayersAtOnce) {
  LanguageModelOptions options{.vocab_size = 7, .layers = 3, .max_length = 5};
  options.block.model_dim = 6;
  options.block.heads = 2;
  Random random(3);
  LanguageModel<double> model(options, random);
  scatter_parameters(model, 4);
  expect_layers(attention_of(model, tokens, masks::Causal{}), model, tokens, masks::Causal{});
  const Positions later(1);
  expect_layers(attention_of(model, tokens, masks::Causal{}, later), model, tokens, masks::Causal{},
                later);
  auto bert = EncoderOptions::bert();
  bert.vocab_size = 7;
  bert.block = options.block;
  bert.layers = 2;
  const Encoder<double> encoder(bert, random);
  const Mask padding = masks::Padding({4, 3});
  expect_layers(attention_of(encoder, tokens, padding), encoder, tokens, padding);
  const Tokens second({2, 4}, {0, 0, 1, 1, 0, 1, 1, 0});
  expect_layers(attention_of(encoder, tokens, padding, second), encoder, tokens, padding, second);
  expect_layers(attention_of(encoder, tokens, padding, second, later), encoder, tokens, padding,
                second, later);
  EXPECT_FALSE(same_bits(attention_of(encoder, tokens, padding, second),
                         attention_of(encoder, tokens, padding)))
      << "segments are part of what tokens are";
}

TEST(AttentionOf, AllAttentionOfAnEncoderDecoder) {
  auto options = EncoderDecoderOptions::original();
  options.source_vocab_size = options.target_vocab_size = 7;
  options.encoder_layers = 2;
  options.decoder_layers = 3;
  options.block.model_dim = 6;
  options.block.heads = 2;
  Random random(5);
  EncoderDecoder<double> model(options, random);
  scatter_parameters(model, 6);
  const Tokens target({2, 3}, {1, 2, 3, 4, 5, 6});
  const EncoderDecoderMasks masks{masks::Padding({4, 3}), masks::Causal{}, masks::Padding({4, 3})};
  const auto all = attention_of(model, tokens, target, masks);
  expect_layers(all.source, model.encoder, tokens, masks.source);
  EncoderDecoder<double>::Saved saved;
  model.forward(tokens, target, masks, saved);
  for (Index layer = 0; layer < 3; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const auto own = Tensor<double, 4>::copy_of(all.target.view().select(0, layer));
    const auto memory = Tensor<double, 4>::copy_of(all.memory.view().select(0, layer));
    expect_weights(own, masks.target, {2, 2, 3, 3});
    expect_weights(memory, masks.memory, {2, 2, 3, 4});
    const auto& block = model.blocks[at];
    const auto& from = saved.blocks[at];
    EXPECT_TRUE(same_bits(
        own, block.attention.weights(from.attention.query, from.attention.query, masks.target)));
    EXPECT_TRUE(same_bits(memory, block.cross_attention.weights(from.cross_attention.query,
                                                                saved.memory, masks.memory)));
  }
}

}  // namespace
}  // namespace heed::test
