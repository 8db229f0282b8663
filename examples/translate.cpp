// SPDX-License-Identifier: MIT
// An encoder-decoder learns to write numbers: "four thousand and twenty one" becomes 4021. Trained
// by teacher forcing, tried on numbers it never met: with the right digits so far before its eyes,
// and on its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "pictures.hpp"

namespace {

using namespace heed;

struct Options {
  std::uint64_t seed = 1;
  Index epochs = 8;
  Index batch_size = 32;
  Index pairs = 6000;
  Index tried = 500;
  Index largest_digits = 5;
  Index layers = 2;
  example::PictureFolder folder;
  std::string color = "auto";
  bool quick = false;
};

// Both languages have 0 for what is not there; the digits begin and end with a token of their own.
constexpr Index padding = 0, begin_token = 1, end_token = 2, first_digit = 3;
const std::vector<std::string> words = {
    "[pad]",   "zero",    "one",       "two",      "three",    "four",    "five",     "six",
    "seven",   "eight",   "nine",      "ten",      "eleven",   "twelve",  "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",  "thirty",   "forty",
    "fifty",   "sixty",   "seventy",   "eighty",   "ninety",   "hundred", "thousand", "and"};
constexpr Index word_of_zero = 1, word_of_twenty = 21, hundred = 29, thousand = 30, and_word = 31;

struct Pair {
  std::vector<Index> source;  // words
  std::vector<Index> target;  // begin, digits, end
};

/// A number from 1 to 999 in words.
void say_hundreds(Index number, std::vector<Index>& into) {
  if (number >= 100) {
    into.insert(into.end(), {word_of_zero + number / 100, hundred});
    number %= 100;
    if (number > 0) into.push_back(and_word);
  }
  if (number >= 20) {
    into.push_back(word_of_twenty + number / 10 - 2);
    number %= 10;
  }
  if (number > 0) into.push_back(word_of_zero + number);
}

Pair pair_of(Index number) {
  Pair pair;
  if (number >= 1000) {
    say_hundreds(number / 1000, pair.source);
    pair.source.push_back(thousand);
    if (number % 1000 > 0 && number % 1000 < 100) pair.source.push_back(and_word);
  }
  say_hundreds(number % 1000, pair.source);
  if (number == 0) pair.source.push_back(word_of_zero);
  pair.target = {begin_token};
  for (const char digit : std::to_string(number)) pair.target.push_back(first_digit + digit - '0');
  pair.target.push_back(end_token);
  return pair;
}

std::string digits_of(std::span<const Index> tokens) {
  std::string text;
  for (const Index token : tokens) {
    if (token == end_token) break;
    text += token >= first_digit ? static_cast<char>('0' + token - first_digit) : '?';
  }
  return text;
}
std::string words_of(std::span<const Index> tokens) {
  std::string text;
  for (const Index token : tokens) {
    text += (text.empty() ? "" : " ") + words[static_cast<std::size_t>(token)];
  }
  return text;
}

/// Numbers of every length, each at most once: the first ones to be tried on, the rest to learn.
std::vector<Pair> random_pairs(Index count, Index largest_digits, Random& random) {
  Index limit = 1;
  for (Index i = 0; i < largest_digits; ++i) limit *= 10;
  std::vector<bool> met(static_cast<std::size_t>(limit));
  std::vector<Pair> pairs;
  while (static_cast<Index>(pairs.size()) < count) {
    Index below = limit;
    if (random.integer(4) == 0) below /= 10;  // shorter ones are rarer than their kinds
    const Index number = random.integer(below);
    if (met[static_cast<std::size_t>(number)]) continue;
    met[static_cast<std::size_t>(number)] = true;
    pairs.push_back(pair_of(number));
  }
  return pairs;
}

struct Batch {
  Tokens source;              // (batch, longest source), padded
  TokenBatch target;          // what the decoder reads, and what it should say next
  EncoderDecoderMasks masks;  // who sees whom
};

Batch batch_of(std::span<const Pair> pairs, std::span<const Index> chosen) {
  std::vector<std::vector<Index>> targets;
  std::vector<Index> all;
  std::size_t longest = 0;
  for (const Index item : chosen) {
    const Pair& pair = pairs[static_cast<std::size_t>(item)];
    all.push_back(static_cast<Index>(targets.size()));
    targets.push_back(pair.target);
    longest = std::max(longest, pair.source.size());
  }
  Tokens source({static_cast<Index>(chosen.size()), static_cast<Index>(longest)});
  std::fill(source.begin(), source.end(), padding);
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    const auto& said = pairs[static_cast<std::size_t>(chosen[row])].source;
    std::copy(said.begin(), said.end(), source.data() + row * longest);
  }
  TokenBatch target = next_token_batch(targets, all, {.padding = padding});
  // [masks]
  const auto masks = masks::create_masks(source, target.tokens, padding);
  const EncoderDecoderMasks who_sees_whom{masks.source, masks.target, masks.memory};
  // [/masks]
  return {std::move(source), std::move(target), who_sees_whom};
}

/// The likeliest token of every row of logits.
template <class T>
Tokens likeliest(const Tensor<T, 3>& logits) {
  Tokens tokens({logits.extent(0), logits.extent(1)});
  const T* row = logits.data();
  for (Index& token : tokens) {
    token = std::max_element(row, row + logits.extent(2)) - row;
    row += logits.extent(2);
  }
  return tokens;
}

// [free]
/// The model's own output: it reads the digits that it wrote, one more at every step.
template <class T>
Tokens free_running(const EncoderDecoder<T>& model, const Batch& batch, Index steps) {
  TranslationSession<T> session(
      model, batch.source, {.masks = {batch.masks.source, masks::Causal{}, batch.masks.memory}});
  Tokens said({session.batch(), steps}), next({session.batch(), 1});
  std::fill(next.begin(), next.end(), begin_token);
  for (Index step = 0; step < steps; ++step) {
    next = likeliest(session.logits(next));
    for (Index row = 0; row < said.extent(0); ++row) said(row, step) = next(row, 0);
  }
  return said;
}
// [/free]

struct Score {
  double digits = 0;  // share of tokens that are right at their place
  double whole = 0;   // share of numbers without a mistake
};

Score score_of(const Tokens& said, const Tokens& targets) {
  Score score;
  double tokens = 0;
  for (Index row = 0; row < targets.extent(0); ++row) {
    bool whole = true;
    for (Index i = 0; i < targets.extent(1); ++i) {
      if (targets(row, i) < 0) continue;  // behind the end
      const bool right = said(row, i) == targets(row, i);
      score.digits += right;
      whole = whole && right;
      ++tokens;
    }
    score.whole += whole;
  }
  score.digits /= tokens;
  score.whole /= static_cast<double>(targets.extent(0));
  return score;
}

struct Curves {
  std::vector<double> loss, taught, free;  // one an epoch; shares of right tokens
};

/// Trains, a line an epoch; tried on `tried`, which is never learned from.
template <class T>
Curves learn(EncoderDecoder<T>& model, std::span<const Pair> pairs, const Batch& tried,
             const Options& options) {
  AdamW optimizer(model);
  auto gradients = zeros_like(model);
  std::vector<Index> lengths;
  for (const Pair& pair : pairs) lengths.push_back(static_cast<Index>(pair.source.size()));
  const BatchOptions batching{
      .batch_size = options.batch_size, .seed = options.seed, .bucket_batches = 8};
  const Index each = std::ssize(make_batches(lengths, 0, batching)), steps = each * options.epochs;
  const Schedule schedule =
      schedules::warm_up(steps / 20, schedules::Cosine{.rate = 2e-3, .steps = steps - steps / 20});
  std::printf(
      "                 right tokens       right numbers\n"
      "           loss   taught  alone    taught  alone\n");
  Curves curves;
  example::catch_interrupts();
  example::Progress progress("learning", steps);
  for (Index epoch = 1, step = 0; epoch <= options.epochs && !example::stop_asked(); ++epoch) {
    double sum = 0;
    Index done = 0;
    for (const auto& chosen : make_batches(lengths, epoch, batching)) {
      // [step]
      const Batch batch = batch_of(pairs, chosen);
      typename EncoderDecoder<T>::Saved saved;
      const Noise noise{.seed = static_cast<std::uint64_t>(step)};
      const auto logits =
          model.forward(batch.source, batch.target.tokens, batch.masks, noise, saved);
      const auto [loss, grad_logits] = cross_entropy(logits, batch.target.targets);
      set_zero(gradients);
      model.backward(grad_logits, saved, gradients);
      optimizer.step(model, gradients, {.learning_rate = schedule(step++), .max_gradient_norm = 1});
      // [/step]
      sum += loss;
      ++done;
      progress.step();
      if (example::stop_asked()) break;
    }
    const Tokens& targets = tried.target.targets;
    const Tokens taught = likeliest(model.forward(tried.source, tried.target.tokens, tried.masks));
    const Score with = score_of(taught, targets);
    const Score without = score_of(free_running(model, tried, targets.extent(1)), targets);
    curves.loss.push_back(sum / static_cast<double>(done));
    curves.taught.push_back(with.digits);
    curves.free.push_back(without.digits);
    progress.clear();
    std::printf("epoch %2td  %.3f  %5.1f %%  %5.1f %%  %5.1f %%  %5.1f %%\n", epoch,
                curves.loss.back(), 100 * with.digits, 100 * without.digits, 100 * with.whole,
                100 * without.whole);
  }
  return curves;
}

/// Which words the last block of the decoder looks at for each digit it says: the mean of its
/// heads.
template <class T>
Heatmap cross_attention_of(const EncoderDecoder<T>& model, std::span<const Pair> pairs,
                           Index item) {
  const Batch batch = batch_of(pairs, std::span(&item, 1));
  typename EncoderDecoder<T>::Saved saved;
  const auto logits = model.forward(batch.source, batch.target.tokens, batch.masks, saved);
  const auto& attention = model.blocks.back().cross_attention;
  const auto& x = saved.blocks.back().cross_attention.query;
  const auto weights = attention.weights(x, saved.memory, batch.masks.memory);
  Tensor<double, 2> mean({weights.extent(2), weights.extent(3)});
  for (Index head = 0; head < weights.extent(1); ++head) {
    for (Index query = 0; query < mean.extent(0); ++query) {
      for (Index key = 0; key < mean.extent(1); ++key) {
        mean(query, key) += static_cast<double>(weights(0, head, query, key)) /
                            static_cast<double>(weights.extent(1));
      }
    }
  }
  Heatmap heatmap = heatmap_of(
      mean, {},
      "Where each digit looks: \"" + words_of(pairs[static_cast<std::size_t>(item)].source) + "\"");
  const Tokens said = likeliest(logits);
  for (const Index token : said) {
    heatmap.row_labels.push_back(token == end_token ? "end" : digits_of(std::span(&token, 1)));
  }
  for (const Index word : batch.source) {
    heatmap.column_labels.push_back(words[static_cast<std::size_t>(word)]);
  }
  heatmap.row_title = "what is said";
  heatmap.column_title = "word";
  heatmap.numbers = true;
  return heatmap;
}

template <class T>
void show(const EncoderDecoder<T>& model, std::span<const Pair> tried, const Options& options) {
  std::printf("\nOn its own, numbers it never met:\n");
  Index longest = 0;
  for (Index item = 0; item < 8; ++item) {
    const Pair& pair = tried[static_cast<std::size_t>(item)];
    const Batch batch = batch_of(tried, std::span(&item, 1));
    const Tokens tokens = free_running(model, batch, options.largest_digits + 1);
    const auto said = digits_of(tokens);
    const auto truth = digits_of(std::span(pair.target).subspan(1));
    std::printf("  %-8s %-8s %s\n", said.c_str(), said == truth ? "" : ("not " + truth).c_str(),
                words_of(pair.source).c_str());
    if (pair.source.size() > tried[static_cast<std::size_t>(longest)].source.size()) longest = item;
  }
  const TerminalOptions terminal = terminal_options(options.color);
  const Heatmap heatmap = cross_attention_of(model, tried, longest);
  std::printf("\n%s", to_terminal(heatmap, terminal).c_str());
  options.folder.write("translate_attention", heatmap);
}

void show(const Curves& curves, const Options& options) {
  const Chart loss{.series = {series_of(curves.loss, "", 1)},
                   .title = "Training loss",
                   .x_title = "epoch",
                   .y_title = "loss"};
  const Chart shares{
      .series = {series_of(curves.taught, "taught", 1), series_of(curves.free, "alone", 1)},
      .title = "Right tokens, of numbers never met",
      .x_title = "epoch",
      .y_title = "share",
      .low = 0,
      .high = 1};
  const TerminalOptions terminal = terminal_options(options.color);
  std::printf("\n%s\n%s", to_terminal(loss, terminal).c_str(),
              to_terminal(shares, terminal).c_str());
  options.folder.write("translate_loss", loss);
  options.folder.write("translate_shares", shares);
}

template <class T>
void run(const Options& options) {
  options.folder.check();
  Random random(options.seed);
  const auto all = random_pairs(options.pairs + options.tried, options.largest_digits, random);
  const std::span tried = std::span(all).first(static_cast<std::size_t>(options.tried));
  const std::span learned = std::span(all).subspan(static_cast<std::size_t>(options.tried));
  // [model]
  EncoderDecoder<T> model({.source_vocab_size = std::ssize(words),
                           .target_vocab_size = first_digit + 10,
                           .encoder_layers = options.layers,
                           .decoder_layers = options.layers,
                           .block = {.model_dim = 64,
                                     .heads = 4,
                                     .hidden_dim = 128,
                                     .activation = ActivationKind::relu,
                                     .norm_before = true,
                                     .positions = PositionKind::sinusoidal,
                                     .dropout = 0.1}},
                          random);
  // [/model]
  std::printf("%td numbers in words to learn from, %td others to be tried on; %td parameters.\n\n",
              std::ssize(learned), std::ssize(tried), parameter_count(model));
  std::vector<Index> numbers(tried.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<Index>(i);
  const auto begin = std::chrono::steady_clock::now();
  const Curves curves = learn(model, learned, batch_of(tried, numbers), options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!options.quick) std::printf("%.1f s\n", seconds.count());
  std::printf(
      "taught: the right digits so far before its eyes, all in one pass. alone: its own.\n"
      "Up to the first mistake these are the same, and so is every bit of the logits:\n"
      "as many numbers are right. After it, only the taught ones find back.\n");
  show(curves, options);
  show(model, tried, options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "An encoder-decoder learns to write numbers that are given in words: source, target and\n"
      "memory masks over padded batches, teacher forcing beside free running, and a picture of\n"
      "the words each digit looks at.");
  app.add_option("--seed", options.seed, "of data, weights and order");
  example::add_threads(app);
  app.add_option("--epochs", options.epochs).between(1, 1000);
  app.add_option("--batch", options.batch_size, "pairs a step").between(1, 10000);
  app.add_option("--pairs", options.pairs, "numbers to learn from").between(1, 50000);
  options.folder.add_options(app);
  example::add_color(app, options.color);
  app.add_flag("--quick", options.quick,
               "numbers below 1000, one block, 8 epochs; in double, no times");
  return app.run(argc, argv, [&] {
    if (options.quick) {
      options.epochs = 8;
      options.pairs = 640;
      options.tried = 100;
      options.largest_digits = 3;
      options.layers = 1;
    }
    options.quick ? run<double>(options) : run<float>(options);
  });
}
