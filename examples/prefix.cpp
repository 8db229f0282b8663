// SPDX-License-Identifier: MIT
// A prefix language model: it reads its prompt in both directions and writes in one. Beside it, the
// same model under a causal mask, on a task whose prompt has to be read both ways.
#include <cstdint>
#include <cstdio>
#include <string>
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
  Index steps = 2500;
  example::Pictures pictures;
};

// The task: each of eight boxes holds the number of a box. Begin at a box, go to the one whose
// number it holds, and so on: where is one after 3 hops? The answers are written for all eight
// beginnings. Two blocks are two looks around: the third hop can only be made where a box of
// the prompt has looked ahead of itself, at the box that it names, wherever that stands.
constexpr Index boxes = 8, hops = 3, sign = boxes, vocabulary = boxes + 1;
constexpr Index prompt = boxes + 1, whole = prompt + boxes;  // boxes, a sign, eight answers

/// A prompt and its answers.
std::vector<Index> some_hunt(Random& random) {
  std::vector<Index> tokens(boxes);
  for (Index box = 0; box < boxes; ++box) tokens[static_cast<std::size_t>(box)] = box;
  heed::detail::shuffle(tokens, random);
  tokens.push_back(sign);
  for (Index begin = 0; begin < boxes; ++begin) {
    Index at = begin;
    for (Index i = 0; i < hops; ++i) at = tokens[static_cast<std::size_t>(at)];
    tokens.push_back(at);
  }
  return tokens;
}

/// Only answers are learned.
Batch lesson(const Mask& mask, Random& random) {
  const Index count = 32;
  Batch batch{Tokens({count, whole - 1}), Tokens({count, whole - 1}), mask};
  batch.targets.fill(-100);
  for (Index row = 0; row < count; ++row) {
    const auto tokens = some_hunt(random);
    for (Index i = 0; i + 1 < whole; ++i) {
      batch.tokens(row, i) = tokens[static_cast<std::size_t>(i)];
      if (i + 1 >= prompt) batch.targets(row, i) = tokens[static_cast<std::size_t>(i + 1)];
    }
  }
  return batch;
}

std::string said(const std::vector<Index>& tokens) {
  std::string text;
  for (const Index token : tokens) text += ' ' + std::to_string(token);
  return text;
}

struct Try {
  example::Score answers;
  Index whole = 0;  // hunts with eight right answers
  std::string first;
};

/// Lets a model write the answers to hunts that are new to it.
Try try_out(const example::Model& model, const Mask& mask, std::uint64_t seed) {
  Random random(seed, 2);
  std::vector<std::vector<Index>> prompts, answers;
  for (int i = 0; i < 200; ++i) {
    const auto tokens = some_hunt(random);
    prompts.emplace_back(tokens.begin(), tokens.begin() + prompt);
    answers.emplace_back(tokens.begin() + prompt, tokens.end());
  }
  const auto written = example::written(model, mask, prompts, boxes);
  Try result{{}, 0, said(written[0])};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    example::Score score;
    for (std::size_t j = 0; j < answers[i].size(); ++j) {
      score += {answers[i][j] == written[i][j], 1};
    }
    result.answers += score;
    result.whole += score.right == boxes;
  }
  return result;
}

/// What the boxes and the answers look at in a first block.
Heatmap look(const std::string& name, const example::Model& model, const Mask& mask,
             std::vector<Index> hunt) {
  hunt.pop_back();  // the last answer is not read
  std::vector<std::string> labels;
  for (const Index token : hunt) {
    labels.push_back(token == sign ? ":" : std::to_string(token));
  }
  Tokens tokens({1, std::ssize(hunt)});
  std::copy(hunt.begin(), hunt.end(), tokens.begin());
  const auto weights = attention_of(model, tokens, mask, 0);
  return heatmap_of(weights.select(0, 0).select(0, 0), labels, name + ": first block, head 0");
}

void run(const Options& options) {
  options.pictures.check();
  std::printf(
      "Eight boxes, each with the number of a box in it. Where is one after three hops?\n\n"
      "mask     right answers   all eight right\n");
  // [masks]
  const Mask causal = masks::Causal{};
  const Mask prefix = masks::Prefix(prompt);  // boxes see all boxes; answers what stands before
  // [/masks]
  Random random(options.seed, 2);  // as try_out
  const auto hunt = some_hunt(random);
  std::string first = "boxes " + said({hunt.begin(), hunt.begin() + boxes}) + "\ntruth " +
                      said({hunt.begin() + prompt, hunt.end()}) + "\n";
  std::vector<Heatmap> pictures;
  for (const auto& [name, mask] : {std::pair{"causal", causal}, {"prefix", prefix}}) {
    const auto model = example::learned(
        example::small_model(vocabulary, whole), {name, options.steps, 5e-3, options.seed},
        [&chosen = mask](Random& data) { return lesson(chosen, data); });
    const Try result = try_out(model, mask, options.seed);
    std::printf("%s   %11.1f %%   %8td of 200\n", name, result.answers.percent(), result.whole);
    first += std::string(name) + result.first + "\n";
    pictures.push_back(look(name, model, mask, hunt));
  }
  std::printf("\nThe first of them, from box 0, 1, …:\n%s", first.c_str());
  options.pictures.write(pictures);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "A prefix language model, which reads its prompt both ways, beside a causal one, on a task\n"
      "that needs it.");
  example::add_lessons(app, options.steps, options.seed, 2500);
  options.pictures.add_options(app, "attention under both masks");
  return app.run(argc, argv, [&] { run(options); });
}
