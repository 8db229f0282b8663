// SPDX-License-Identifier: MIT
#include <heed/distributed/tensor_parallel.hpp>
#include <heed/generation/generate.hpp>
#include <heed/generation/session.hpp>
#include <heed/masks.hpp>
#include <heed/pretrained.hpp>

#include "distributed/ranks.hpp"
#include "support/models.hpp"

namespace heed::test {
namespace {

/// The logits of a session that reads two sequences in three calls.
template <class T>
Tensor<T, 2> read_by_session(const LanguageModel<T>& model) {
  Session<T> session(model, {.batch = 2, .max_length = 40, .page_size = 16, .pages = 6});
  session.prefill(std::vector<std::vector<Index>>{{1, 2, 3, 4, 5}, {6, 7}});
  session.prefill(std::vector<std::vector<Index>>{{}, {8, 9, 10}});
  return session.step(std::vector<Index>{11, 12});
}

template <class T>
void expect_same_logits(const LanguageModel<T>& whole, const LanguageModel<T>& part) {
  Tokens tokens({2, 33});
  for (Index i = 0; i < tokens.size(); ++i) tokens.data()[i] = i * 7 % 40;
  EXPECT_TRUE(
      same_bits(whole.forward(tokens, masks::Causal{}), part.forward(tokens, masks::Causal{})));
  EXPECT_TRUE(same_bits(read_by_session(whole), read_by_session(part)));
}

TEST(TensorParallel, EveryKindOfModelHasTheLogitsOfOneProcess) {
  Random random(3);
  BlockOptions block{.model_dim = 30, .heads = 10, .kv_heads = 5, .head_dim = 6, .hidden_dim = 37};
  const auto check = [&](LanguageModelOptions options) {
    options.vocab_size = 43;
    options.layers = 2;
    options.init_std = 0.3;
    LanguageModel<float> model(options, random);
    const auto part = tensor_parallel(*world(), model);
    EXPECT_LT(part.blocks[0].attention.options.kv_heads, 6 - world()->size() / 2);
    expect_same_logits(model, part);
    model.pack();
    expect_same_logits(model, tensor_parallel(*world(), model));
    set_products(model, Products::bfloat16);
    expect_same_logits(model, tensor_parallel(*world(), model));
  };
  check(LanguageModelOptions::llama(block));
  block.softcap = 3;
  block.sinks = true;
  block.window = 4;
  block.query_key_norm = NormKind::rms;
  block.positions = PositionKind::alibi;
  check({.tied_head = false, .block = block});
  block.positions = PositionKind::relative;
  block.relative_reach = 5;
  block.fused_projection = true;
  check({.block = block});
}

TEST(TensorParallel, WhatDoesNotFitIsRefusedOnAllRanks) {
  const Communicator& ranks = *world();
  const bool last = ranks.rank() + 1 == ranks.size();
  Random random(3);
  const auto model_of = [&](Index heads, Index layers, Index hidden = 0) {
    return LanguageModel<float>(
        {.vocab_size = 9,
         .layers = layers,
         .block = {.model_dim = 8, .heads = 8, .kv_heads = heads, .hidden_dim = hidden}},
        random);
  };
  if (ranks.size() == 1) return;
  EXPECT_EQ(refusal([&] { tensor_parallel(ranks, model_of(1, 1)); }),
            "tensor_parallel over " + std::to_string(ranks.size()) +
                " ranks: rank 0: 1 key heads for " + std::to_string(ranks.size()) +
                " ranks: each takes one or more");
  const auto narrow = refusal([&] { tensor_parallel(ranks, model_of(8, 1, 1)); });
  EXPECT_EQ(narrow, "tensor_parallel: a matrix of 1 outputs for " + std::to_string(ranks.size()) +
                        " ranks, in units of 1");
  const auto other = refusal([&] { tensor_parallel(ranks, model_of(8, last ? 2 : 1)); });
  EXPECT_NE(other.find(" brings layers 2, rank 0 layers 1"), std::string::npos) << other;
}

TEST(TensorParallel, AnotherModelOfOneRankIsRefusedOnAll) {
  const Communicator& ranks = *world();
  if (ranks.size() == 1) return;
  const bool last = ranks.rank() + 1 == ranks.size();
  const LanguageModelOptions usual{.vocab_size = 9,
                                   .block = {.model_dim = 8, .heads = 8, .hidden_dim = 32}};
  const auto said = [&](const LanguageModelOptions& options, Products products = Products::exact) {
    Random random(3);  // embeddings come first, so they are alike
    LanguageModel<float> model(options, random);
    set_products(model, products);
    return refusal([&] { tensor_parallel(ranks, std::move(model)); });
  };
  const auto changed = [&](const auto& change) {
    auto options = usual;
    if (last) change(options);
    return said(options);
  };
  const std::string who = "rank " + std::to_string(ranks.size() - 1) + " brings ";
  const auto expect = [&](const std::string& what, const std::string& message) {
    EXPECT_NE(message.find(who + what), std::string::npos) << message;
  };
  expect("heads 8, kv_heads 8, head_dim 2", changed([](auto& o) { o.block.head_dim = 2; }));
  expect("a gate 32 outputs", changed([](auto& o) { o.block.gated = true; }));
  expect("a projection to queries 8 outputs, ", changed([](auto& o) { o.block.bias = false; }));
  expect("a projection to queries none", changed([](auto& o) { o.block.fused_projection = true; }));
  expect("norms of (queries, keys) 1 1",
         changed([](auto& o) { o.block.query_key_norm = NormKind::rms; }));
  expect("a head 9 outputs", changed([](auto& o) { o.tied_head = false; }));
  expect("an up projection 24 outputs", changed([](auto& o) { o.block.hidden_dim = 24; }));
  const std::string settings = "layers whose settings";
  expect(settings, changed([](auto& o) { o.block.activation = ActivationKind::relu; }));
  expect(settings, changed([](auto& o) { o.block.norm_before = false; }));
  expect(settings, changed([](auto& o) { o.block.norm_epsilon = 1e-4; }));
  expect(settings, changed([](auto& o) { o.block.positions = PositionKind::alibi; }));
  expect(settings, changed([](auto& o) { o.block.softcap = 3; }));
  expect(settings, changed([](auto& o) { o.block.sinks = true; }));
  expect(settings, changed([](auto& o) { o.block.window = 3; }));
  Random random(3);
  LanguageModel<float> model(usual, random);
  model.blocks[0].attention.own_mask = masks::last_n(last ? 4 : 5);
  EXPECT_EQ(refusal([&] { tensor_parallel(ranks, model); }), "computed") << "masks have no number";
  expect(settings, changed([](auto& o) { o.block.rotary.low_frequencies.factor = 8; }));
  expect(settings, changed([](auto& o) { o.block.rotary.divisors = {8}; }));
  expect("a projection to queries 8 outputs and biases, products 2",
         said(usual, last ? Products::bfloat16 : Products::exact));
  EXPECT_EQ(changed([](auto& o) { o.block.hidden_dim = 0; }), "computed") << "4 · model_dim";
}

TEST(TensorParallel, HeadsOfPackedWeightsBeginAtPanels) {
  const Communicator& ranks = *world();
  if (ranks.size() == 1) return;
  Random random(3);
  LanguageModel<float> model(
      {.vocab_size = 300, .block = {.model_dim = 256, .heads = 4, .head_dim = 96}}, random);
  for (auto& block : model.blocks) {
    auto& parts = block.attention.projections;
    for (auto* layer : {&*parts.query, &*parts.key, &*parts.value}) {
      layer->pack();
      layer->weight = {};
    }
  }
  const std::string said = refusal([&] { tensor_parallel(ranks, model); });
  if (ranks.size() == 2) {
    EXPECT_EQ(said, "computed") << "192 is three panels";
  } else {
    EXPECT_NE(said.find("are cut in units of 64 outputs, and the keys of rank "), std::string::npos)
        << said;
  }
}

TEST(TensorParallel, SmolLM2WritesTheTextOfOneProcess) {
  HEED_NEEDS_MODELS();
  if (world()->size() != 2) GTEST_SKIP() << "two ranks take 2 and 1 of its 3 key heads";
  const auto file = Gguf::open(model_file("smollm2.gguf"));
  const auto tokenizer = load_tokenizer(file);
  const auto model = load_packed_llama(file);
  const Communicator& ranks = *world();
  // [call]
  const auto part = tensor_parallel(ranks, model);   // this rank's rows of every matrix
  Session<float> session(part, {.max_length = 64});  // this rank's heads of the cache
  // [/call]
  const auto prompt = tokenizer.encode("The capital of France is");
  Session<float> whole_session(model, {.max_length = 64});
  auto expected = whole_session(prompt), logits = session(prompt);
  std::string text;
  for (Index i = 0; i < 6; ++i) {
    ASSERT_TRUE(same_bits(expected, logits)) << "token " << i;
    const Index next = std::max_element(logits.begin(), logits.end()) - logits.begin();
    text += tokenizer.text(next);
    expected = whole_session(std::vector{next});
    logits = session(std::vector{next});
  }
  EXPECT_NE(text.find("Paris"), std::string::npos) << text;
}

}  // namespace
}  // namespace heed::test
