// SPDX-License-Identifier: MIT
#include <heed/models/language_model.hpp>

#include <algorithm>

#include <heed/masks.hpp>
#include <heed/training/losses.hpp>
#include <heed/training/optimizers.hpp>

#include "laws/layer_laws.hpp"
#include "support/attention_calls.hpp"

namespace heed::test {
namespace {

LanguageModelOptions gpt() {
  LanguageModelOptions options;
  options.vocab_size = 7;
  options.block.model_dim = 6;
  options.block.heads = 2;
  options.layers = 2;
  options.max_length = 5;
  return options;
}

LanguageModelOptions llama() {
  auto options = LanguageModelOptions::llama();
  options.vocab_size = 7;
  options.block.model_dim = 8;
  options.block.heads = 4;
  options.block.kv_heads = 2;
  options.block.hidden_dim = 9;
  return options;
}

template <class T>
LanguageModel<T> made(const LanguageModelOptions& options) {
  Random random(1);
  return {options, random};
}

const Tokens tokens({2, 4}, {1, 6, 0, 3, 2, 2, 5, 1});

void expect_model_gradients(const LanguageModelOptions& options) {
  auto model = made<double>(options);
  scatter_parameters(model, 2);
  const Mask mask = masks::Causal{} & masks::Padding({4, 3});
  LanguageModel<double>::Saved saved;
  const auto logits = model.forward(tokens, mask, saved);
  std::mt19937_64 bits(3);
  const auto weights = random_tensor<double, 3>(logits.extents(), bits);
  auto gradients = zeros_like(model);
  model.backward(weights, saved, gradients);
  EXPECT_TRUE(same_bits(logits, model.forward(tokens, mask)));
  expect_parameter_gradients(model, gradients,
                             [&] { return weighted_sum(model.forward(tokens, mask), weights); });
}

TEST(LanguageModel, GradientsAreRight) {
  expect_model_gradients(gpt());
  expect_model_gradients(llama());
  auto after = gpt();
  after.block.norm_before = false;
  after.block.positions = PositionKind::sinusoidal;
  after.tied_head = false;
  after.layers = 1;
  expect_model_gradients(after);
  after.block.positions = PositionKind::relative;
  after.block.relative_reach = 2;
  expect_model_gradients(after);
  after.block.positions = PositionKind::alibi;
  expect_model_gradients(after);
}

TEST(LanguageModel, LlamasPresetKeepsTheSizes) {
  const auto options = LanguageModelOptions::llama({.model_dim = 8, .heads = 4, .kv_heads = 2});
  EXPECT_EQ(options.block.kv_heads, 2);
  EXPECT_EQ(options.block.norm, NormKind::rms);
  EXPECT_EQ(options.block.positions, PositionKind::rotary);
  EXPECT_TRUE(options.block.gated && options.block.norm_before);
  EXPECT_FALSE(options.block.bias || options.tied_head);
  EXPECT_EQ(LanguageModelOptions().block.positions, PositionKind::learned);
}

TEST(LanguageModel, NamesOfGPT) {
  auto options = gpt();
  options.layers = 1;
  EXPECT_EQ(parameter_names(made<float>(options)),
            (std::vector<std::string>{"embedding.weight",
                                      "positions.weight",
                                      "blocks.0.attention_norm.weight",
                                      "blocks.0.attention_norm.bias",
                                      "blocks.0.attention.query.weight",
                                      "blocks.0.attention.query.bias",
                                      "blocks.0.attention.key.weight",
                                      "blocks.0.attention.key.bias",
                                      "blocks.0.attention.value.weight",
                                      "blocks.0.attention.value.bias",
                                      "blocks.0.attention.out.weight",
                                      "blocks.0.attention.out.bias",
                                      "blocks.0.feed_forward_norm.weight",
                                      "blocks.0.feed_forward_norm.bias",
                                      "blocks.0.feed_forward.up.weight",
                                      "blocks.0.feed_forward.up.bias",
                                      "blocks.0.feed_forward.down.weight",
                                      "blocks.0.feed_forward.down.bias",
                                      "norm.weight",
                                      "norm.bias"}));
}

TEST(LanguageModel, NamesOfLlama) {
  EXPECT_EQ(
      parameter_names(made<float>(llama())),
      (std::vector<std::string>{
          "embedding.weight", "blocks.0.attention_norm.weight", "blocks.0.attention.query.weight",
          "blocks.0.attention.key.weight", "blocks.0.attention.value.weight",
          "blocks.0.attention.out.weight", "blocks.0.feed_forward_norm.weight",
          "blocks.0.feed_forward.up.weight", "blocks.0.feed_forward.gate.weight",
          "blocks.0.feed_forward.down.weight", "norm.weight", "head.weight"}));
}

TEST(LanguageModel, CountsAsGPT2Does) {
  LanguageModelOptions options;
  options.vocab_size = 50257;
  options.block.model_dim = 768;
  options.block.heads = 12;
  options.layers = 1;
  const Index block = 7087872;  // of GPT-2 small, which has 12 and 124439808 in all
  EXPECT_EQ(parameter_count(made<float>(options)) + 11 * block, 124439808);
}

TEST(LanguageModel, LogitsDependOnWhatCameBeforeAlone) {
  for (auto options : {gpt(), llama()}) {
    options.block.model_dim = 64;
    options.max_length = 200;
    auto model = made<float>(options);
    Tokens text({2, 150});
    for (Index i = 0; i < text.size(); ++i) text.data()[i] = i * i % 7;
    const auto whole = model.forward(text, masks::Causal{});
    const auto beginning = [&](Index length) {
      return Tokens::copy_of(text.view().slice(1, 0, length));
    };
    for (const Index length : {1, 2, 63, 97, 149}) {
      EXPECT_TRUE(
          same_bits(model.forward(beginning(length), masks::Causal{}), tokens_of(whole, 0, length)))
          << length;
    }
    const auto item = model.forward(Tokens::copy_of(text.view().slice(0, 1, 2)), masks::Causal{});
    EXPECT_TRUE(same_bits(item, Tensor<float, 3>::copy_of(whole.view().slice(0, 1, 2))));
    model.pack();
    EXPECT_TRUE(same_bits(model.forward(text, masks::Causal{}), whole)) << "packed";
    set_zero(model.input.embedding);
    EXPECT_TRUE(model.input.embedding.packed.empty());
    if (!model.head.own) {  // its weight is the table
      const auto logits = model.forward(text, masks::Causal{});
      EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](auto x) { return x == 0; }));
    }
  }
}

TEST(LanguageModel, WhatStandsInPaddingChangesNoOtherBit) {
  const auto model = made<float>(gpt());
  const Mask mask = masks::Causal{} & masks::Padding({4, 2});
  auto other = tokens;
  other(1, 2) = 0;
  other(1, 3) = 6;
  const auto a = model.forward(tokens, mask), b = model.forward(other, mask);
  for (Index token = 0; token < 2; ++token) {
    for (Index i = 0; i < 7; ++i) EXPECT_EQ(a(1, token, i), b(1, token, i));
  }
}

TEST(LanguageModel, FloatAndDoubleStartAlike) {
  auto narrow = made<float>(llama());
  auto wide = made<double>(llama());
  const auto a = flat_parameters<float>(narrow);
  const auto b = flat_parameters<double>(wide);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (Index j = 0; j < a[i].size; ++j) {
      ASSERT_EQ(a[i].data[j], static_cast<float>(b[i].data[j])) << a[i].name;
    }
  }
}

TEST(LanguageModel, DropoutIsRepeatable) {
  auto options = gpt();
  options.block.dropout = 0.2;
  const auto model = made<float>(options);
  LanguageModel<float>::Saved a, b;
  const auto first = model.forward(tokens, masks::Causal{}, Noise{1}, a);
  EXPECT_TRUE(same_bits(first, model.forward(tokens, masks::Causal{}, Noise{1}, b)));
  EXPECT_FALSE(same_bits(first, model.forward(tokens, masks::Causal{}, Noise{2}, b)));
  EXPECT_TRUE(
      same_bits(model.forward(tokens, masks::Causal{}), model.forward(tokens, masks::Causal{}, b)));
}

TEST(LanguageModel, ProductsReachEveryPart) {
  auto options = llama();
  auto model = made<float>(options);
  const auto before = model.forward(tokens, masks::Causal{});
  set_products(model, Products::bfloat16);
  EXPECT_EQ(model.head.own->products, Products::bfloat16);
  for (const auto& block : model.blocks) {
    EXPECT_EQ(block.attention.products, Products::bfloat16);
    const auto projections = Projections<float>::members(block.attention.projections).parts();
    const auto projection = [&](std::size_t at) {
      return &**static_cast<const std::optional<Linear<float>>*>(projections[at]);
    };
    for (const auto* layer :
         {projection(0), projection(1), projection(2), &block.attention.out, &block.feed_forward.up,
          &*block.feed_forward.gate, &block.feed_forward.down}) {
      EXPECT_EQ(layer->products, Products::bfloat16);
    }
  }
  const auto narrow = model.forward(tokens, masks::Causal{});
  EXPECT_FALSE(same_bits(narrow, before));
  model.pack();
  EXPECT_TRUE(same_bits(model.forward(tokens, masks::Causal{}), narrow));
  set_products(model, Products::exact);
  EXPECT_TRUE(same_bits(model.forward(tokens, masks::Causal{}), before));
  auto wide = made<double>(options);
  EXPECT_THROW(set_products(wide, Products::bfloat16), InvalidArgument);
}

/// The losses of a training on texts in which each letter decides the next.
std::vector<double> losses_with(Products products, Index threads) {
  set_thread_count(threads);
  auto options = gpt();
  options.block.model_dim = 32;
  options.max_length = 32;
  auto model = made<float>(options);
  set_products(model, products);
  AdamW optimizer(model);
  auto gradients = zeros_like(model);
  Random random(5);
  std::vector<double> losses;
  for (int step = 0; step < 60; ++step) {
    Tokens text({8, 32}), next({8, 32});
    for (Index row = 0; row < 8; ++row) {
      Index letter = random.integer(7);
      for (Index i = 0; i < 32; ++i) {
        text(row, i) = letter;
        next(row, i) = letter = (3 * letter + (i % 4 == 3 ? random.integer(7) : 1)) % 7;
      }
    }
    LanguageModel<float>::Saved saved;
    const auto logits = model.forward(text, masks::Causal{}, saved);
    const auto [loss, grad] = cross_entropy(logits, next);
    losses.push_back(loss);
    set_zero(gradients);
    model.backward(grad, saved, gradients);
    optimizer.step(model, gradients, {.learning_rate = 3e-3});
  }
  return losses;
}

TEST(LanguageModel, LearnsInMixedPrecisionAsInFloat) {
  const RestoreSettings restore;
  const auto exact = losses_with(Products::exact, 1), mixed = losses_with(Products::bfloat16, 1);
  EXPECT_NE(mixed, exact);
  EXPECT_EQ(losses_with(Products::bfloat16, 3), mixed);
  EXPECT_LT(mixed.back(), 0.5 * mixed.front());
  for (std::size_t i = 0; i < mixed.size(); ++i) EXPECT_NEAR(mixed[i], exact[i], 5e-3) << i;
}

TEST(LanguageModel, RefusesTextsThatAreTooLong) {
  EXPECT_THROW(made<float>(gpt()).forward(Tokens({1, 6}), masks::Causal{}), ShapeError);
}

/// GPT-2's: norms 1 and 0, biases 0, weights normal, what ends in a residual sum smaller.
TEST(LanguageModel, StartsAsGPT2Does) {
  auto options = gpt();
  options.vocab_size = 300;
  options.block.model_dim = 64;
  options.layers = 8;
  options.init_std = 0.1;
  for (const bool tied : {true, false}) {
    options.tied_head = tied;
    const auto model = made<double>(options);
    for_each_parameter(
        [&](std::string_view name, const auto& parameter) {
          double squares = 0;
          for (const double value : parameter) squares += value * value;
          const double size = std::sqrt(squares / static_cast<double>(parameter.size()));
          const bool ends = name.ends_with("out.weight") || name.ends_with("down.weight");
          const double expected = name.ends_with("norm.weight") ? 1
                                  : name.ends_with("bias")      ? 0
                                  : ends                        ? 0.1 / 4
                                                                : 0.1;
          EXPECT_NEAR(size, expected, 0.1 * expected) << name;
        },
        model);
  }
}

}  // namespace
}  // namespace heed::test
