// SPDX-License-Identifier: MIT
// Memory that runs out at any place of a call leaves a session as it was.
#include <heed/generation/session.hpp>
#include <heed/generation/translation_session.hpp>

#include "faults/failing_memory.hpp"
#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

using Sequences = std::vector<std::vector<Index>>;

LanguageModel<float> session_model(bool norm_before) {
  LanguageModelOptions options;
  options.vocab_size = 11;
  options.block.model_dim = 8;
  options.block.heads = 2;
  options.layers = 2;
  options.max_length = 64;
  options.block.norm_before = norm_before;
  Random random(1);
  LanguageModel<float> model(options, random);
  scatter_parameters(model, 2);
  return model;
}

/// A session and what its last call gave.
template <class S>
struct Reading {
  S session;
  Tensor<float, 1> one = {};
  Tensor<float, 2> last = {};
  Tensor<float, 3> all = {};

  std::string result() const { return bytes(one) + bytes(last) + bytes(all); }
};

/// Lengths, the result, and what a copy says to the next tokens.
std::string read_digest(const Reading<Session<float>>& reading) {
  auto copy = reading.session;
  std::vector<Index> lengths, next;
  for (Index item = 0; item < copy.batch(); ++item) {
    lengths.push_back(copy.length(item));
    next.push_back(item + 1);
  }
  return reading.result() + bytes(lengths) + bytes(copy.step(next));
}

class FailingSessions : public FailingMemory {};

TEST_P(FailingSessions, AreAsTheyWere) {
  for (const bool norm_before : {false, true}) {
    const auto model = session_model(norm_before);
    for (const Index page_size : {0, 16}) {
      const auto make = [&] {
        Reading<Session<float>> reading{
            Session<float>(model, {.batch = 2, .max_length = 48, .page_size = page_size})};
        reading.session.prefill(Sequences{{1, 2, 1}, {2}});
        return reading;
      };
      const Sequences next = {{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}, {2, 6}};
      const std::vector<Index> column = {3, 4}, parents = {1, 0};
      const Tokens rows({2, 2}, {3, 4, 1, 2});
      const auto expect = [&](const auto& call) { fail_every_allocation(make, call, read_digest); };
      expect([&](auto& reading) { reading.last = reading.session.prefill(next); });
      expect([&](auto& reading) { reading.last = reading.session.step(column); });
      expect([&](auto& reading) { reading.all = reading.session.logits(rows); });
      expect([&](auto& reading) { reading.session.reorder(parents); });
    }
  }
}

TEST_P(FailingSessions, AreAsTheyWereWhereTokensLeave) {
  const auto model = session_model(true);
  const auto make = [&] {
    Reading<Session<float>> reading{
        Session<float>(model, {.batch = 2, .max_length = 16, .slide = 5, .page_size = 16})};
    reading.session.prefill(Sequences{{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9}, {2}});
    return reading;
  };
  const Sequences next = {{3, 1}, {2, 6}};
  fail_every_allocation(
      make, [&](auto& reading) { reading.last = reading.session.prefill(next); }, read_digest);
}

TEST_P(FailingSessions, OfTranslationsAreAsTheyWere) {
  Random random(1);
  const EncoderDecoder<float> model({.source_vocab_size = 11,
                                     .target_vocab_size = 7,
                                     .decoder_layers = 2,
                                     .max_length = 40,
                                     .block = {.model_dim = 8, .heads = 2}},
                                    random);
  using Translation = Reading<TranslationSession<float>>;
  const auto make = [&] {
    Translation reading{
        TranslationSession<float>(model, Tokens({1, 3}, {1, 2, 3}), {.page_size = 16})};
    reading.session.logits(Tokens({1, 2}, {1, 2}));
    return reading;
  };
  const auto digest = [](const Translation& reading) {
    auto copy = reading.session;
    const auto length = copy.length();
    return reading.result() + bytes(&length, 1) + bytes(copy.logits(Tokens({1, 1}, {1})));
  };
  const std::vector<Index> next = {3, 4};
  const auto expect = [&](const auto& call) { fail_every_allocation(make, call, digest); };
  expect([&](auto& reading) { reading.one = reading.session(next); });
  expect([&](auto& reading) { reading.all = reading.session.logits(Tokens({1, 2})); });
  expect([&](auto& reading) { reading.last = reading.session.step(std::vector<Index>{3}); });
}

INSTANTIATE_TEST_SUITE_P(Threads, FailingSessions, ::testing::Values(1, 2));

}  // namespace
}  // namespace heed::test
