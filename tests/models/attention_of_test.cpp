// SPDX-License-Identifier: MIT
#include <heed/models/language_model.hpp>

#include <heed/masks.hpp>
#include <heed/models/encoder.hpp>

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

}  // namespace
}  // namespace heed::test
