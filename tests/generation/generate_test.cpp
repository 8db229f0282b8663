// SPDX-License-Identifier: MIT
#include <heed/generation/generate.hpp>

#include <gtest/gtest.h>

#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/generation/session.hpp>
#include <heed/models/language_model.hpp>

namespace heed {
namespace {

TEST(StopStrings, HoldsBackWhatMayBecomeOne) {
  StopStrings stop({"<end>", "\n\n"});
  EXPECT_EQ(stop.feed("Hello"), "Hello");
  EXPECT_EQ(stop.feed(" <e"), " ");
  EXPECT_EQ(stop.feed("m>\n"), "<em>");
  EXPECT_EQ(stop.feed("x<"), "\nx");
  EXPECT_EQ(stop.feed("<end"), "<");
  EXPECT_FALSE(stop.stopped());
  EXPECT_EQ(stop.feed("> more"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.feed("again"), "");
  EXPECT_EQ(stop.finish(), "");
  StopStrings open({"abc"});
  EXPECT_EQ(open.feed("xab"), "x");
  EXPECT_EQ(open.finish(), "ab");
}

TEST(StopStrings, AnyCutGivesTheSameText) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += static_cast<char>('a' + random.integer(3));
    StopStrings stop({"abca", "cc"});
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const auto length = static_cast<std::size_t>(1 + random.integer(4));
      shown += stop.feed(text.substr(at, length));
      at += length;
    }
    shown += stop.finish();
    const std::size_t end = std::min(text.find("abca"), text.find("cc"));
    EXPECT_EQ(stop.stopped(), end != std::string::npos);
    EXPECT_EQ(shown, text.substr(0, end)) << text;
  }
}

TEST(StopStrings, TheOneThatIsCompleteFirstEndsTheText) {
  for (const std::string text : {"xabc", "aabcb"}) {
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      StopStrings stop({"abc", "b"});
      std::string shown = stop.feed(text.substr(0, cut));
      shown += stop.feed(text.substr(cut));
      EXPECT_EQ(shown + stop.finish(), text.substr(0, text.find('b'))) << cut;
    }
  }
  StopStrings together({"bc", "abc"});
  EXPECT_EQ(together.feed("xabc"), "x") << "of two that end together the longest";
}

TEST(StopStrings, NoneAndEmpty) {
  StopStrings none({});
  EXPECT_EQ(none.feed("text"), "text");
  EXPECT_THROW(StopStrings({"a", ""}), InvalidArgument);
}

/// Says that the token after t is t + 1 of 10, and remembers what it was asked to read.
struct Counter {
  std::vector<std::vector<Index>> read;
  std::vector<double> operator()(std::span<const Index> tokens) {
    read.emplace_back(tokens.begin(), tokens.end());
    std::vector<double> logits(10, -1e9);
    logits[static_cast<std::size_t>((tokens.back() + 1) % 10)] = 0;
    return logits;
  }
};

const std::vector<Index> prompt = {4, 2};

TEST(Generate, ReadsThePromptOnceAndThenOneTokenAtATime) {
  Counter step;
  Random random(1);
  std::vector<Index> told;
  const auto result = generate(step, prompt, Sampler{}, {.max_tokens = 4}, random,
                               [&](Index token) { told.push_back(token); });
  EXPECT_EQ(result.tokens, (std::vector<Index>{3, 4, 5, 6}));
  EXPECT_EQ(told, result.tokens);
  EXPECT_EQ(result.reason, StopReason::max_tokens);
  EXPECT_EQ(step.read, (std::vector<std::vector<Index>>{{4, 2}, {3}, {4}, {5}}));
}

TEST(Generate, ASessionWithoutRoomEndsIt) {
  Random random(3);
  const LanguageModel<float> model(
      {.vocab_size = 9, .layers = 1, .max_length = 12, .block = {.model_dim = 8, .heads = 2}},
      random);
  Session<float> session(model);
  EXPECT_EQ(session.room(), 12);
  const auto result = generate(session, prompt);
  EXPECT_EQ(result.reason, StopReason::length);
  EXPECT_EQ(result.tokens.size(), 11u);  // the last one is not read
  EXPECT_EQ(session.length(), 12);
  EXPECT_EQ(session.room(), 0);
  EXPECT_THROW(generate(session, prompt), ShapeError) << "a prompt without room";
  auto longer = model.options;
  longer.max_length = 48;
  const LanguageModel<float> other(longer, random);
  Session<float> paged(other, {.page_size = 16, .pages = 2});
  EXPECT_EQ(paged.room(), 32);
  EXPECT_EQ(generate(paged, prompt).tokens.size(), 31u);
  Session<float> sliding(model, {.slide = 6});
  EXPECT_EQ(generate(sliding, prompt, {.max_tokens = 30}).reason, StopReason::max_tokens);
}

TEST(Generate, StopRules) {
  Counter step;
  Random random(1);
  auto result = generate(step, prompt, Sampler{}, {.tokens = {9, 6}}, random);
  EXPECT_EQ(result.tokens, (std::vector<Index>{3, 4, 5})) << "the stop token is not written";
  EXPECT_EQ(result.reason, StopReason::token);
  result = generate(step, prompt, Sampler{}, {.sequences = {{2, 3}, {5, 6}}}, random);
  EXPECT_EQ(result.tokens, (std::vector<Index>{3, 4, 5, 6})) << "the prompt is not looked at";
  EXPECT_EQ(result.reason, StopReason::sequence);
  result = generate(step, prompt, Sampler{}, {}, random, [](Index token) { return token != 4; });
  EXPECT_EQ(result.tokens, (std::vector<Index>{3, 4}));
  EXPECT_EQ(result.reason, StopReason::caller);
  EXPECT_TRUE(generate(step, prompt, Sampler{}, {.max_tokens = 0}, random).tokens.empty());
  EXPECT_THROW(generate(step, prompt, {.sequences = {{2, 3}, {}}}), InvalidArgument);
}

TEST(Generate, TheSamplerSeesPromptAndWhatWasWritten) {
  std::vector<std::vector<Index>> seen;
  const Sampler sampler{[&](std::span<double>, std::span<const Index> history) {
    seen.emplace_back(history.begin(), history.end());
  }};
  Counter step;
  Random random(1);
  generate(step, prompt, sampler, {.max_tokens = 2}, random);
  EXPECT_EQ(seen, (std::vector<std::vector<Index>>{{4, 2}, {4, 2, 3}}));
}

TEST(Generate, RefusesAnEmptyPrompt) {
  Counter step;
  Random random(1);
  EXPECT_THROW(generate(step, std::vector<Index>(), Sampler{}, {}, random), InvalidArgument);
}

}  // namespace
}  // namespace heed
