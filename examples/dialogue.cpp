// SPDX-License-Identifier: MIT
// A dialogue of two people who must not hear each other: a mask of groups keeps what each of them
// said to themselves. Beside it, the same model under a causal mask, which hears everything.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "learn.hpp"
#include "pictures.hpp"

namespace {

using namespace heed;
using example::Batch;

struct Options {
  std::uint64_t seed = 1;
  Index steps = 300;
  example::Pictures pictures;
};

// Turns of three tokens: who speaks, what about, a digit. Each tells a number of their own, then
// asks for it, and for that of the other, in any order; the model answers.
constexpr Index turns = 6, length = 3 * turns;
enum Word : Index { ana = 10, ben, is, mine, theirs, vocabulary };
const std::array<const char*, 5> words = {"ana:", "ben:", "my number is", "what was mine?",
                                          "what was theirs?"};

using Dialogue = std::vector<Index>;

Dialogue some_dialogue(Random& random) {
  const std::array<Index, 2> numbers = {random.integer(10), random.integer(10)};
  const std::array<Index, 2> first = {random.integer(2), random.integer(2)};
  Dialogue tokens;
  for (Index turn = 0; turn < turns; ++turn) {
    const auto speaker = static_cast<std::size_t>(turn % 2);
    const bool tells = turn < 2, asks_for_mine = (turn / 2 == 1) == (first[speaker] == 0);
    tokens.push_back(ana + turn % 2);
    tokens.push_back(tells ? is : asks_for_mine ? mine : theirs);
    tokens.push_back(numbers[tells || asks_for_mine ? speaker : 1 - speaker]);
  }
  return tokens;
}

// [groups]
/// Each turn belongs to its speaker, with the answer in it.
Mask own_turns() {
  std::vector<Index> speakers;
  for (Index i = 0; i < length; ++i) speakers.push_back(i / 3 % 2);
  return masks::Causal{} & masks::Groups(speakers);
}
// [/groups]

/// Answers alone are learned, or those to one question.
Batch batch_of(const std::vector<Dialogue>& dialogues, const Mask& mask, Index question = -1) {
  const Index count = std::ssize(dialogues);
  Batch batch{Tokens({count, length - 1}), Tokens({count, length - 1}), masks::partial(mask)};
  batch.targets.fill(-100);
  for (Index row = 0; row < count; ++row) {
    const Dialogue& dialogue = dialogues[static_cast<std::size_t>(row)];
    std::copy(dialogue.begin(), dialogue.end() - 1, batch.tokens.data() + row * (length - 1));
    for (std::size_t answer = 8; answer < dialogue.size(); answer += 3) {
      if (question >= 0 && dialogue[answer - 1] != question) continue;
      batch.targets(row, static_cast<Index>(answer) - 1) = dialogue[answer];
    }
  }
  return batch;
}

std::vector<Dialogue> some_dialogues(Index count, Random& random) {
  std::vector<Dialogue> dialogues;
  for (Index i = 0; i < count; ++i) dialogues.push_back(some_dialogue(random));
  return dialogues;
}

/// Of how many dialogues ana's number changes what the model thinks at any of ben's tokens.
int heard(const example::Model& model, const Mask& mask, std::vector<Dialogue> dialogues) {
  const auto logits_of = [&](const Dialogue& dialogue) {
    const Batch batch = batch_of({dialogue}, mask);
    return model.forward(batch.tokens, batch.mask);
  };
  int heard = 0;
  for (Dialogue& dialogue : dialogues) {
    const auto before = logits_of(dialogue);
    dialogue[2] = (dialogue[2] + 1) % 10;
    const auto after = logits_of(dialogue);
    bool same = true;
    for (Index i = 0; i + 1 < length; ++i) {
      same = same && (i / 3 % 2 == 0 || std::memcmp(&before(0, i, 0), &after(0, i, 0),
                                                    vocabulary * sizeof(double)) == 0);
    }
    heard += same ? 0 : 1;
  }
  return heard;
}

/// A dialogue turn by turn: the questions are given, the model answers, with a cache.
void talk(const example::Model& model, const Mask& mask, const Dialogue& dialogue) {
  // [talk]
  Session<double> session(model, {.max_length = length, .mask = mask});
  Dialogue unread;
  for (std::size_t i = 0; i < dialogue.size(); ++i) {
    Index token = dialogue[i];
    if (i >= 8 && i % 3 == 2) {
      const auto logits = session(unread);
      token = example::likeliest(as_span(logits.view()));
      unread.clear();
    }
    unread.push_back(token);
    // [/talk]
    if (token < 10)
      std::printf(" %td%s\n", token, token == dialogue[i] ? "" : "   (wrong)");
    else
      std::printf("%s%s", token <= ben ? "    " : " ",
                  words[static_cast<std::size_t>(token - ana)]);
  }
}

/// What is said and looked at in a first block.
Heatmap look(const char* name, const example::Model& model, const Mask& mask,
             const Dialogue& dialogue) {
  const Batch batch = batch_of({dialogue}, mask);
  std::vector<std::string> labels;
  for (const Index token : batch.tokens) {
    labels.push_back(token < 10 ? std::to_string(token)
                                : words[static_cast<std::size_t>(token - ana)]);
  }
  const auto weights = attention_of(model, batch.tokens, batch.mask, 0);
  return heatmap_of(weights.select(0, 0).select(0, 0), labels,
                    std::string(name) + ": first block, head 0");
}

void run(const Options& options) {
  options.pictures.check();
  const Mask causal = masks::Causal{}, groups = own_turns();
  Random fresh(options.seed, 2);
  const auto held_out = some_dialogues(500, fresh);
  std::vector<Heatmap> pictures;
  for (const auto& [name, mask] : {std::pair{"causal", causal}, {"groups", groups}}) {
    const auto model = example::learned(
        example::small_model(vocabulary, length), {name, options.steps, 5e-3, options.seed},
        [&chosen = mask](Random& data) { return batch_of(some_dialogues(32, data), chosen); });
    std::printf(
        "%s\n  right answers in 500 new dialogues: one's own number %5.1f %%, theirs %5.1f %%\n",
        name, example::score(model, batch_of(held_out, mask, mine)).percent(),
        example::score(model, batch_of(held_out, mask, theirs)).percent());
    std::printf("  another number of ana's changes bits of ben's turns: in %d of 100\n",
                heard(model, mask, {held_out.begin(), held_out.begin() + 100}));
    talk(model, mask, held_out[1]);
    std::printf("\n");
    pictures.push_back(look(name, model, mask, held_out[1]));
  }
  std::printf("Who cannot hear a number can only guess it: right once in ten.\n");
  options.pictures.write(pictures);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "A dialogue of two people who must not hear each other, by a mask of groups.");
  example::add_lessons(app, options.steps, options.seed, 300);
  options.pictures.add_options(app, "attention under both masks");
  return app.run(argc, argv, [&] { run(options); });
}
