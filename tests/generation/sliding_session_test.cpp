// SPDX-License-Identifier: MIT
// Sessions that go on when their context is full.
#include <vector>

#include <heed/generation/generate.hpp>
#include <heed/generation/session.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

using Text = std::vector<Index>;

LanguageModel<float> model_of(PositionKind kind) {
  LanguageModelOptions options;
  options.vocab_size = 23;
  options.block.model_dim = 24;
  options.block.heads = 3;
  options.layers = 2;
  options.max_length = 20;
  options.block.positions = kind;
  options.block.relative_reach = 5;
  Random random(1);
  LanguageModel<float> model(options, random);
  scatter_parameters(model, 2);
  return model;
}

Text some_tokens(Index count, std::uint64_t seed) {
  Random random(seed);
  Text tokens;
  for (Index i = 0; i < count; ++i) tokens.push_back(random.integer(23));
  return tokens;
}

/// What stays of a text: its end, without the smallest multiple of `slide` that leaves `most`.
Text window(const Text& text, Index slide, Index most) {
  Index gone = 0;
  while (static_cast<Index>(text.size()) - gone > most) gone += slide;
  return {text.begin() + gone, text.end()};
}

/// The logits behind the last token by one pass.
Tensor<float, 1> full_pass(const LanguageModel<float>& model, const Text& text) {
  Tokens tokens({1, static_cast<Index>(text.size())});
  std::copy(text.begin(), text.end(), tokens.begin());
  const auto logits = model.forward(tokens, masks::Causal{});
  return Tensor<float, 1>::copy_of(logits.view().select(0, 0).select(0, tokens.size() - 1));
}

Tensor<float, 1> row_of(const Tensor<float, 2>& logits, Index row) {
  return Tensor<float, 1>::copy_of(logits.view().select(0, row));
}

TEST(SlidingSession, IsAFullPassOverTheWindow) {
  for (const auto kind : {PositionKind::learned, PositionKind::sinusoidal, PositionKind::rotary,
                          PositionKind::relative, PositionKind::alibi}) {
    const auto model = model_of(kind);
    for (const Index slide : {1, 7, 10, 20}) {
      for (const Index page_size : {0, 16}) {
        Session<float> session(model, {.slide = slide, .page_size = page_size});
        Text all;
        for (const Index count : {3, 16, 1, 1, 1, 30, 1, 2, 5, 1, 1, 1, 1, 1, 1, 1, 100, 1}) {
          const auto next = some_tokens(count, all.size() + 1);
          all.insert(all.end(), next.begin(), next.end());
          const auto own = window(all, slide, 20);
          ASSERT_TRUE(same_bits(session(next), full_pass(model, own)))
              << all.size() << " tokens, slide " << slide << ", kind " << static_cast<int>(kind);
          ASSERT_EQ(session.length(), static_cast<Index>(own.size()));
        }
      }
    }
  }
}

TEST(SlidingSession, EverySequenceSlidesForItself) {
  const auto model = model_of(PositionKind::learned);
  Session<float> session(model, {.batch = 3, .slide = 6, .page_size = 16});
  std::vector<Text> all(3), next(3);
  for (std::size_t turn = 0; turn < 12; ++turn) {
    if (turn == 8) {
      const Text parents = {2, 2, 0};
      session.reorder(parents);
      all = {all[2], all[2], all[0]};
    }
    for (std::size_t item = 0; item < 3; ++item) {
      const Index count = item == 2 ? 1 : turn % 3 == item ? 9 : 0;
      next[item] = some_tokens(count, 10 * turn + item);
      all[item].insert(all[item].end(), next[item].begin(), next[item].end());
    }
    const auto logits = session.prefill(next);
    for (std::size_t item = 0; item < 3; ++item) {
      if (next[item].empty()) continue;
      ASSERT_TRUE(same_bits(row_of(logits, static_cast<Index>(item)),
                            full_pass(model, window(all[item], 6, 20))))
          << "turn " << turn << ", sequence " << item;
    }
  }
}

TEST(SlidingSession, GoesOnFromWhatIsTakenBack) {
  const auto model = model_of(PositionKind::learned);
  Session<float> session(model, {.slide = 4});
  auto text = some_tokens(19, 1);
  session(text);
  session.truncate(0, 12);
  text.resize(12);
  const auto next = some_tokens(10, 2);
  text.insert(text.end(), next.begin(), next.end());
  EXPECT_TRUE(same_bits(session(next), full_pass(model, window(text, 4, 20))));
  EXPECT_EQ(session.length(), 18);
  session.clear();
  EXPECT_TRUE(same_bits(session(next), full_pass(model, next)));
}

TEST(SlidingSession, WhatFailsLeavesItAsItWas) {
  const auto model = model_of(PositionKind::learned);
  Session<float> session(model, {.batch = 2, .slide = 4});
  session.prefill(std::vector<Text>{some_tokens(18, 1), {3}});
  auto before = session;
  auto wrong = some_tokens(5, 2);
  wrong.back() = 23;
  EXPECT_THROW(session.prefill(std::vector<Text>{wrong, {1}}), InvalidArgument) << "no such token";
  EXPECT_THROW(session.prefill(std::vector<Text>{some_tokens(5, 2)}), ShapeError);
  EXPECT_THROW(session.logits(Tokens({2, 3})), ShapeError) << "they must fit";
  EXPECT_EQ(session.length(0), 18);
  EXPECT_EQ(session.length(1), 1);
  const std::vector<Text> next = {some_tokens(3, 4), {5}};
  EXPECT_TRUE(same_bits(session.prefill(next), before.prefill(next)));
}

TEST(SlidingSession, GenerateWritesAsMuchAsIsAsked) {
  const auto model = model_of(PositionKind::learned);
  const auto prompt = some_tokens(50, 5);  // longer than the context
  const Sampler greedy{samplers::Greedy{}};
  for (const Index slide : {1, 10}) {
    Session<float> session(model, {.slide = slide});
    Random random(1);
    const auto cached = generate(session, prompt, greedy, {.max_tokens = 70}, random);
    Text all;
    const auto full = [&](std::span<const Index> tokens) {
      all.insert(all.end(), tokens.begin(), tokens.end());
      return full_pass(model, window(all, slide, 20));
    };
    EXPECT_EQ(cached.tokens.size(), 70u);
    EXPECT_EQ(cached.reason, StopReason::max_tokens);
    EXPECT_EQ(cached.tokens, generate(full, prompt, greedy, {.max_tokens = 70}, random).tokens);
  }
  Session<float> fixed(model);
  Random random(1);
  EXPECT_THROW(generate(fixed, prompt, greedy, {.max_tokens = 70}, random), ShapeError);
}

}  // namespace
}  // namespace heed::test
