// SPDX-License-Identifier: MIT
// Settings of a decoder by the article's procedure: does it converge on a little data; which batch
// size, learning rate, warm-up, heads and width, dropout. Each run stops early on a validation set;
// a ranked table and the curves of the best run at the end.
#include <algorithm>
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
  Index epochs = 30;
  Index patience = 3;
  std::string color = "auto";
  example::Pictures pictures;
  bool quick = false;
};

/// What is tried.
struct Settings {
  Index batch_size = 32;
  double learning_rate = 1e-3;
  Index heads = 4;
  Index model_dim = 32;
  double dropout = 0.1;
  bool warm_up = true;  // an epoch of rising learning rates
};

struct Outcome {
  Settings settings;
  double validation = 0;
  Index epoch = 0;                         // of the best validation loss
  std::vector<double> trained, validated;  // losses of every epoch
};

/// Waves: token = start + stride · time (mod 10), one token in ten replaced by a random one, so
/// that there is noise not to be learned.
std::vector<std::vector<Index>> waves(Index count, Random& random) {
  std::vector<std::vector<Index>> sequences;
  for (Index i = 0; i < count; ++i) {
    const Index start = random.integer(10), stride = 1 + random.integer(4);
    std::vector<Index> sequence;
    for (Index at = 0; at < 13; ++at) {
      const bool noise = random.integer(10) == 0;
      sequence.push_back(noise ? random.integer(10) : (start + stride * at) % 10);
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

struct Data {
  std::vector<std::vector<Index>> train, validation;
};

template <class T>
double mean_loss(const LanguageModel<T>& model, std::span<const std::vector<Index>> sequences) {
  std::vector<Index> all(sequences.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Index>(i);
  const TokenBatch batch = next_token_batch(sequences, all);
  return cross_entropy_loss(model.forward(batch.tokens, masks::Causal{}), batch.targets);
}

/// Trains until the validation loss has not fallen for some epochs.
template <class T>
Outcome try_out(const Settings& settings, const Data& data, const Options& options) {
  Random random(options.seed);
  LanguageModel<T> model({.vocab_size = 10,
                          .layers = 2,
                          .max_length = 12,
                          .block = {.model_dim = settings.model_dim,
                                    .heads = settings.heads,
                                    .dropout = settings.dropout}},
                         random);
  AdamW optimizer(model);
  // [early_stopping]
  EarlyStopping stopping(model, {.patience = options.patience});
  // [/early_stopping]
  const std::vector<Index> lengths(data.train.size(), 13);
  const Index batches =
      (static_cast<Index>(lengths.size()) + settings.batch_size - 1) / settings.batch_size;
  const Schedule schedule = schedules::warm_up(
      settings.warm_up ? batches : 0,
      schedules::Cosine{.rate = settings.learning_rate, .steps = options.epochs * batches});
  auto gradients = zeros_like(model);
  Index step = 0;
  std::vector<double> trained, validated;
  for (Index epoch = 0; epoch < options.epochs && !example::stop_asked(); ++epoch) {
    double sum = 0;
    for (const auto& chosen :
         make_batches(lengths, epoch, {.batch_size = settings.batch_size, .seed = options.seed})) {
      const TokenBatch batch = next_token_batch(data.train, chosen);
      typename LanguageModel<T>::Saved saved;
      const Noise noise{.seed = static_cast<std::uint64_t>(step)};
      const auto logits = model.forward(batch.tokens, masks::Causal{}, noise, saved);
      set_zero(gradients);
      const auto [loss, grad_logits] = cross_entropy(logits, batch.targets);
      model.backward(grad_logits, saved, gradients);
      sum += loss;
      optimizer.step(model, gradients, {.learning_rate = schedule(step++), .max_gradient_norm = 1});
    }
    trained.push_back(sum / static_cast<double>(batches));
    validated.push_back(mean_loss(model, data.validation));
    if (stopping.update(validated.back(), model)) break;
  }
  return {settings, stopping.best_loss(), stopping.best_evaluation(), trained, validated};
}

void print_row(const Outcome& outcome) {
  const Settings& s = outcome.settings;
  std::printf("%5td  %6.0e  %-7s  %5td  %5td  %7.1f   %.3f  %5td  %7td\n", s.batch_size,
              s.learning_rate, s.warm_up ? "yes" : "no", s.heads, s.model_dim, s.dropout,
              outcome.validation, outcome.epoch, std::ssize(outcome.validated));
  std::fflush(stdout);
}
constexpr const char* heading =
    "batch    rate  warm-up  heads  width  dropout   loss   epoch  stopped";

/// Tries one setting in several values and keeps the best.
template <class T>
void search(const char* what, const std::vector<Settings>& tries, const Data& data,
            const Options& options, std::vector<Outcome>& outcomes) {
  std::printf("\n%s\n%s\n", what, heading);
  for (const Settings& settings : tries) {
    outcomes.push_back(try_out<T>(settings, data, options));
    print_row(outcomes.back());
    if (example::stop_asked()) return;
  }
}

const Settings& best_of(const std::vector<Outcome>& outcomes) {
  return std::min_element(outcomes.begin(), outcomes.end(),
                          [](const auto& a, const auto& b) { return a.validation < b.validation; })
      ->settings;
}

/// Which of the best settings are the largest or the smallest that were tried: the true best may
/// lie beyond.
void print_corner(const Settings& best) {
  std::printf("\nBest values at the edge of what was tried; values beyond may be better:");
  if (best.batch_size != 32) std::printf(" batch %td", best.batch_size);
  if (best.learning_rate != 5e-4) std::printf(" rate %.0e", best.learning_rate);
  if (best.heads != 4) std::printf(" heads %td", best.heads);
  std::printf(" width %td", best.model_dim);
  if (best.dropout != 0.2) std::printf(" dropout %.1f", best.dropout);
  std::printf("\n");
}

void show_curves(const Outcome& best, const Options& options) {
  const Chart chart{.series = {series_of(best.trained, "training, with dropout", 1),
                               series_of(best.validated, "validation", 1)},
                    .title = "Loss of the best run",
                    .x_title = "epoch",
                    .y_title = "loss"};
  std::printf("\n%s", to_terminal(chart, terminal_options(options.color)).c_str());
  options.pictures.write(chart);
}

/// One setting after the other, each from the best of those before.
template <class T>
std::vector<Outcome> search_all(const Data& data, const Options& options) {
  std::vector<Outcome> outcomes;
  std::vector<Settings> tries;
  for (const Index batch_size : {16, 32, 64}) {
    for (const double rate : {1e-4, 5e-4, 1e-3}) {
      tries.push_back({.batch_size = batch_size, .learning_rate = rate});
    }
  }
  search<T>("Batch size and learning rate", tries, data, options, outcomes);
  Settings best = best_of(outcomes);
  Settings cold = best;
  cold.warm_up = false;
  search<T>("Without warm-up", {cold}, data, options, outcomes);
  best = best_of(outcomes);
  tries.clear();
  for (const Index heads : {2, 4, 8}) {
    for (const Index width : {32, 64}) {
      if (heads == best.heads && width == best.model_dim) continue;  // tried above
      tries.push_back(best);
      tries.back().heads = heads;
      tries.back().model_dim = width;
    }
  }
  search<T>("Heads and width", tries, data, options, outcomes);
  best = best_of(outcomes);
  tries.clear();
  for (const double dropout : {0.2, 0.3}) {
    tries.push_back(best);
    tries.back().dropout = dropout;
  }
  search<T>("Dropout", tries, data, options, outcomes);
  return outcomes;
}

void rank(std::vector<Outcome> outcomes, const Options& options) {
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const auto& a, const auto& b) { return a.validation < b.validation; });
  std::printf("\nRanked by validation loss\n%s\n", heading);
  for (const Outcome& outcome : outcomes) print_row(outcome);
  const auto unfinished = std::count_if(outcomes.begin(), outcomes.end(), [&](const auto& outcome) {
    return outcome.epoch + options.patience > options.epochs;
  });
  std::printf(
      "\n%td of %td runs had not stopped by themselves after %td epochs: --epochs gives more.\n",
      unfinished, std::ssize(outcomes), options.epochs);
  print_corner(outcomes.front().settings);
  if (!outcomes.front().validated.empty()) show_curves(outcomes.front(), options);
}

template <class T>
void run(Options options) {
  options.pictures.check();
  example::catch_interrupts();
  Random random(options.seed, 1);
  const Index count = options.quick ? 160 : 1000;
  const Data data{waves(count, random), waves(count / 4, random)};
  const std::vector<std::vector<Index>> few(data.train.begin(), data.train.begin() + 32);
  Options by_heart = options;
  by_heart.epochs = by_heart.patience = 300;
  const auto baseline = try_out<T>({.batch_size = 8, .dropout = 0}, {few, few}, by_heart);
  // Sequences that begin alike cannot be told apart at first: even by heart some loss is left.
  std::printf("Baseline: 32 sequences, 300 epochs, to a loss of %.3f from ln 10 = 2.303: %s\n",
              baseline.validation,
              baseline.validation < 0.2 ? "learned by heart" : "NOT LEARNED BY HEART");
  if (example::stop_asked()) return;
  rank(search_all<T>(data, options), options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "Finds settings for a decoder: baseline, batch size, learning rate, warm-up, heads and\n"
      "width, dropout, each run with early stopping; a ranked table, the curves of the best run.");
  app.add_option("--epochs", options.epochs, "at most").at_least(1);
  app.add_option("--patience", options.patience, "epochs without improvement").at_least(1);
  app.add_option("--seed", options.seed, "of data and weights");
  example::add_threads(app);
  example::add_color(app, options.color);
  options.pictures.add_options(app, "the curves of the best run");
  app.add_flag("--quick", options.quick, "less data; in double");
  return app.run(argc, argv, [&] {
    if (options.quick) options.epochs = 30;
    options.quick ? run<double>(options) : run<float>(options);
  });
}
