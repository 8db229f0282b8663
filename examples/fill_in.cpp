// SPDX-License-Identifier: MIT
// A masked language model: words are hidden, and found again by what stands on both sides of them.
// Beside it, the same model under a causal mask, which reads what stands before them alone.
#include <cstdint>
#include <cstdio>
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
using example::Score;

struct Options {
  std::uint64_t seed = 1;
  Index steps = 600;
  example::Pictures pictures;
};

// The weather tells how the sentence ends, and the end tells the weather; a name tells whose
// friend.
struct Weather {
  const char *word, *end;
};
const std::vector<Weather> weathers = {
    {"terrible", "stayed at home"}, {"sunny", "swam in the lake"}, {"windy", "flew a kite"},
    {"snowy", "built a snowman"},   {"foggy", "got lost"},         {"hot", "ate ice cream"}};
struct Person {
  const char *name, *whose;
};
const std::vector<Person> people = {{"anna", "her"}, {"ben", "his"},  {"clara", "her"},
                                    {"dan", "his"},  {"emma", "her"}, {"finn", "his"}};
constexpr Index longest_sentence = 15;
const std::vector<const char*> cities = {"oslo", "rome", "lima", "cairo", "paris", "delhi"};

struct Sentence {
  std::vector<Index> words;
  Index weather = 0, whose = 0;  // where these stand
};

/// All sentences that can be said; those that no model is trained on are every sixth.
struct Text {
  example::Words words;
  Index mask = words.number("____"), padding = words.number("");
  std::vector<Sentence> train, held_out;

  Text() {
    for (std::size_t w = 0; w < weathers.size(); ++w) {
      for (std::size_t p = 0; p < people.size(); ++p) {
        for (std::size_t c = 0; c < cities.size(); ++c) {
          const std::string begin = std::string("the weather in ") + cities[c] + " was ";
          const std::string middle = std::string(" so ") + people[p].name + " and ";
          Sentence sentence{words.numbers(begin + weathers[w].word + middle + people[p].whose +
                                          " friend " + weathers[w].end),
                            5, 9};
          ((w + p + c) % 6 == 0 ? held_out : train).push_back(std::move(sentence));
        }
      }
    }
  }
};

/// Sentences side by side, padded; nothing to be said yet.
Batch batch_of(const Text& text, const std::vector<const Sentence*>& sentences) {
  std::size_t longest = 0;
  for (const Sentence* sentence : sentences) longest = std::max(longest, sentence->words.size());
  const Extents<2> extents = {std::ssize(sentences), static_cast<Index>(longest)};
  Batch batch{.tokens = Tokens(extents), .targets = Tokens(extents)};
  batch.tokens.fill(text.padding);
  batch.targets.fill(-100);
  for (std::size_t row = 0; row < sentences.size(); ++row) {
    std::copy(sentences[row]->words.begin(), sentences[row]->words.end(),
              batch.tokens.data() + row * longest);
  }
  return batch;
}

/// Who is seen: the words of the sentence, or those of them that were read before.
Mask mask_of(const Text& text, const Tokens& tokens, bool both_sides) {
  // [mask]
  const auto words = masks::padding_of_tokens(tokens, text.padding);
  if (both_sides) return words;
  return masks::Causal{} & words;
  // [/mask]
}

// [corrupt]
/// Chooses 15 % of the words to be found again. Of these, 80 % are hidden, 10 % replaced by any
/// word, and 10 % stay as they are: the model cannot know which of the words it sees are right.
void corrupt(const Text& text, Batch& batch, Random& random) {
  for (Index i = 0; i < batch.tokens.size(); ++i) {
    Index& token = batch.tokens.data()[i];
    if (token == text.padding || random.uniform() >= 0.15) continue;
    batch.targets.data()[i] = token;
    const double fate = random.uniform();
    if (fate < 0.8)
      token = text.mask;
    else if (fate < 0.9)
      token = 2 + random.integer(text.words.size() - 2);
  }
}
// [/corrupt]

/// Hides one word of each held-out sentence, that `at` finds, and counts how many are found again.
template <class At>
Score found(const Text& text, const example::Model& model, bool both_sides, const At& at) {
  std::vector<const Sentence*> sentences;
  for (const Sentence& sentence : text.held_out) sentences.push_back(&sentence);
  Batch batch = batch_of(text, sentences);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const auto row = static_cast<Index>(i), word = at(*sentences[i]);
    batch.targets(row, word) = std::exchange(batch.tokens(row, word), text.mask);
  }
  batch.mask = mask_of(text, batch.tokens, both_sides);
  return example::score(model, batch);
}

std::string said(const Text& text, const Tokens& tokens) {
  std::string said;
  for (const Index token : tokens) said += (said.empty() ? "" : " ") + text.words[token];
  return said;
}

/// Probabilities of all words at every place of one sentence.
Tensor<double, 3> guesses(const Text& text, const example::Model& model, const Tokens& tokens,
                          bool both_sides) {
  return softmax(model.forward(tokens, mask_of(text, tokens, both_sides)));
}

void print_guesses(const char* who, const Text& text, const Tensor<double, 3>& guesses, Index at) {
  std::vector<Index> order;
  for (Index word = 0; word < guesses.extent(2); ++word) order.push_back(word);
  std::partial_sort(order.begin(), order.begin() + 3, order.end(),
                    [&](Index a, Index b) { return guesses(0, at, a) > guesses(0, at, b); });
  std::printf("  %-14s", who);
  for (std::size_t i = 0; i < 3; ++i) {
    std::printf("%s%s %.0f %%", i == 0 ? "" : ", ", text.words[order[i]].c_str(),
                100 * guesses(0, at, order[i]));
  }
  std::printf("\n");
}

/// A sentence without its weather.
Tokens hidden(const Text& text, const Sentence& sentence) {
  Tokens tokens = batch_of(text, {&sentence}).tokens;
  tokens(0, sentence.weather) = text.mask;
  return tokens;
}

// [fill_in]
/// Fills all gaps, the surest word first: what is filled in helps to fill in the rest.
void fill_in(const Text& text, const example::Model& model, Tokens tokens) {
  for (;;) {
    std::printf("  %s\n", said(text, tokens).c_str());
    const auto sure = guesses(text, model, tokens, true);
    double best = 0;
    Index at = 0, word = 0;
    for (Index i = 0; i < tokens.extent(1); ++i) {
      for (Index w = 2; tokens(0, i) == text.mask && w < sure.extent(2); ++w) {
        if (sure(0, i, w) > best) best = sure(0, i, w), at = i, word = w;
      }
    }
    if (best == 0) return;
    tokens(0, at) = word;
  }
}
// [/fill_in]

/// The same weights and the same batches for both readers; they differ in what they see.
example::Model reader(const Text& text, const Options& options, bool both_sides) {
  const auto lesson = [&](Random& random) {
    std::vector<const Sentence*> chosen;
    for (int i = 0; i < 16; ++i) {
      const Index any = random.integer(std::ssize(text.train));
      chosen.push_back(&text.train[static_cast<std::size_t>(any)]);
    }
    Batch batch = batch_of(text, chosen);
    corrupt(text, batch, random);
    batch.mask = mask_of(text, batch.tokens, both_sides);
    return batch;
  };
  return example::learned(
      example::small_model(text.words.size(), longest_sentence),
      {both_sides ? "both sides" : "before alone", options.steps, 5e-3, options.seed}, lesson);
}

void print_found(const Text& text, const example::Model& both, const example::Model& before) {
  std::printf("Hidden words of held-out sentences that are found again:\n");
  std::printf("  %-40s both sides   what stands before\n", "");
  const auto row = [&](const char* name, const auto& at) {
    std::printf("  %-40s %8.1f %%  %17.1f %%\n", name, found(text, both, true, at).percent(),
                found(text, before, false, at).percent());
  };
  row("the weather, which the end tells", [](const Sentence& s) { return s.weather; });
  row("her or his, which the name before tells", [](const Sentence& s) { return s.whose; });
  row("the last word, which the weather tells",
      [](const Sentence& s) { return std::ssize(s.words) - 1; });
}

/// What a word looks at in one sentence, under both masks.
void write_pictures(const Options& options, const Text& text, const example::Model& both,
                    const example::Model& before) {
  const Tokens tokens = hidden(text, text.held_out[0]);
  std::vector<std::string> labels;
  for (const Index token : tokens) labels.push_back(text.words[token]);
  std::vector<Heatmap> pictures;
  const auto add = [&](const char* title, const example::Model& model, bool both_sides) {
    const auto weights = attention_of(model, tokens, mask_of(text, tokens, both_sides), 0);
    pictures.push_back(heatmap_of(weights.select(0, 0).select(0, 0), labels, title));
  };
  add("both sides: first block, head 0", both, true);
  add("before alone: first block, head 0", before, false);
  options.pictures.write(pictures);
}

void run(const Options& options) {
  options.pictures.check();
  Text text;
  std::printf("%td sentences to learn from, %td held out; %td words.\n\n", std::ssize(text.train),
              std::ssize(text.held_out), text.words.size());
  const auto both = reader(text, options, true), before = reader(text, options, false);
  print_found(text, both, before);
  std::printf("\nHeld-out sentences, and the likeliest words for the gap:\n");
  for (const std::size_t i : {0u, 13u, 26u}) {
    const Sentence& sentence = text.held_out[i];
    const Tokens tokens = hidden(text, sentence);
    std::printf("  %s\n", said(text, tokens).c_str());
    print_guesses("both sides", text, guesses(text, both, tokens, true), sentence.weather);
    print_guesses("before alone", text, guesses(text, before, tokens, false), sentence.weather);
  }
  std::printf("\nSeveral gaps, the surest word first:\n");
  Tokens gaps = batch_of(text, {&text.held_out[1]}).tokens;
  for (Index at = 5; at < gaps.extent(1); at += 2) gaps(0, at) = text.mask;
  fill_in(text, both, gaps);
  write_pictures(options, text, both, before);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "A masked language model finds hidden words by what stands on both sides of them.");
  example::add_lessons(app, options.steps, options.seed, 600);
  options.pictures.add_options(app, "what each word looks at");
  return app.run(argc, argv, [&] { run(options); });
}
