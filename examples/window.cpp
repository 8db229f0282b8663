// SPDX-License-Identifier: MIT
// How far a window reaches: each block of a model carries what a token knows by one window, so that
// two blocks reach twice as far. Beside it, the same model under a causal mask, which sees all.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "learn.hpp"

namespace {

using namespace heed;
using example::Batch;

struct Options {
  std::uint64_t seed = 1;
  Index steps = 1500;
};

// The task: the next digit is the one that stood 3, 6 or 9 places before it, as the last token
// asks. Tokens: 3 · digit + what it asks for. A window of 4 tokens ends 3 places before its own.
constexpr Index length = 32, window = 4, vocabulary = 30;

Batch lesson(Index count, const Mask& mask, Random& random, Index asked = -1) {
  Batch batch{Tokens({count, length}), Tokens({count, length}), mask};
  for (Index row = 0; row < count; ++row) {
    for (Index i = 0; i < length; ++i) {
      batch.tokens(row, i) = random.integer(vocabulary);
      const Index question = batch.tokens(row, i) % 3, from = i + 1 - 3 * (question + 1);
      const bool counts = from >= 0 && (asked < 0 || asked == question);
      batch.targets(row, i) = counts ? batch.tokens(row, from) / 3 : -100;
    }
  }
  return batch;
}

/// Nine digits, and how the model goes on from them.
std::string text_of(const example::Model& model, const Mask& mask, Index asked) {
  std::vector<Index> unread;
  std::string text;
  for (const Index digit : {3, 1, 4, 1, 5, 9, 2, 6, 5}) {
    unread.push_back(3 * digit + asked);
    text += std::to_string(digit);
  }
  text += " > ";
  Session<double> session(model, {.max_length = length, .mask = mask});
  for (int i = 0; i < 18; ++i) {
    const auto logits = session(unread);
    const auto shares = softmax(logits);
    const Index digit = example::likeliest(as_span(logits.view()));
    const bool sure = shares[digit] > 0.5;
    text += sure ? std::to_string(digit) : "?";
    unread = {3 * (sure ? digit : 0) + asked};
  }
  return text;
}

/// The share of scores that a mask leaves to be computed.
double seen(const Mask& mask) {
  Index seen = 0;
  for (Index query = 0; query < length; ++query) {
    for (Index key = 0; key < length; ++key) seen += mask.allows({0, 0, query, key});
  }
  return 100 * static_cast<double>(seen) / static_cast<double>(length * length);
}

void run(const Options& options) {
  std::printf(
      "Digits that are to be repeated as they stood 3, 6 or 9 places before:\n\n"
      "mask           scores seen   right: 3 before   6 before   9 before\n");
  // [masks]
  const std::vector<std::pair<const char*, Mask>> masks = {{"causal", masks::Causal{}},
                                                           {"window of 4", masks::last_n(window)}};
  // [/masks]
  auto shape = example::small_model(vocabulary, length);
  shape.block.positions = PositionKind::relative;  // a learned bias by distance
  shape.block.relative_reach = 9;
  shape.block.heads = 4;
  std::string texts;
  for (const auto& [name, mask] : masks) {
    const auto model =
        example::learned(shape, {name, options.steps, 1e-2, options.seed},
                         [&chosen = mask](Random& data) { return lesson(16, chosen, data); });
    Random fresh(options.seed, 2);
    std::printf("%-14s   %6.1f %%      ", name, seen(mask));
    for (Index asked = 0; asked < 3; ++asked) {
      const double right = example::score(model, lesson(200, mask, fresh, asked)).percent();
      right < 15 ? std::printf("    guesses") : std::printf("    %5.0f %%", right);
      texts += std::string(asked == 0 ? name : "") + "\n  " + text_of(model, mask, asked);
    }
    texts += '\n';
    std::printf("\n");
  }
  std::printf(
      "\nNine digits, and how the models go on; ? where no digit is likelier than all others:\n%s",
      texts.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "How far a window reaches in a model of two blocks, beside a causal mask.");
  example::add_lessons(app, options.steps, options.seed, 1500);
  return app.run(argc, argv, [&] { run(options); });
}
