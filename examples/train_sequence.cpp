// SPDX-License-Identifier: MIT
// A small decoder learns sequences: first random ones, which cannot be predicted, then copies,
// which can. Four pictures of each: loss, attention, truth beside prediction, attention over time.
#include <chrono>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "learn.hpp"
#include "pictures.hpp"

namespace {

using namespace heed;

struct Options {
  std::uint64_t seed = 1;
  Index epochs = 20;
  Index batch_size = 32;
  Index copied = 5;
  example::PictureFolder folder;
  std::string color = "auto";
  bool quick = false;
};

// [decoder]
/// Embedding, one causal attention of 8 heads, and a linear map to logits: no positions, no norm.
template <class T>
struct SimpleDecoder {
  struct Saved {
    typename Embedding<T>::Saved embedding;
    typename MultiHeadAttention<T>::Saved attention;
    typename Linear<T>::Saved head;
  };

  SimpleDecoder(Index vocabulary, Random& random)
      : embedding({.vocab_size = vocabulary, .dim = 64}, random),
        attention({.model_dim = 64, .heads = 8, .fused = true}, random),
        head({.inputs = 64, .outputs = vocabulary}, random) {}

  Tensor<T, 3> forward(const Tokens& tokens, const Mask& mask, Saved& saved) const {
    auto x = embedding.forward(tokens, saved.embedding);
    x = attention.forward(std::move(x), mask, saved.attention);
    return head.forward(std::move(x), saved.head);
  }
  void backward(const Tensor<T, 3>& grad, const Saved& saved, SimpleDecoder& gradients) const {
    auto x = head.backward(grad, saved.head, gradients.head);
    x = attention.backward(x, saved.attention, gradients.attention);
    embedding.backward(x, saved.embedding, gradients.embedding);
  }
  static auto members(auto& model) {
    return Members{member("embedding", model.embedding), member("attention", model.attention),
                   member("head", model.head)};
  }

  Embedding<T> embedding;
  MultiHeadAttention<T> attention;
  Linear<T> head;
};
// [/decoder]

/// The attention whose weights are shown, and what it was given.
template <class T>
Tensor<T, 4> weights_of(const SimpleDecoder<T>& model,
                        const typename SimpleDecoder<T>::Saved& saved) {
  const auto& x = saved.attention.query;
  return model.attention.weights(x, x, masks::Causal{});
}
template <class T>
Tensor<T, 4> weights_of(const LanguageModel<T>& model,
                        const typename LanguageModel<T>::Saved& saved) {
  const auto& x = saved.blocks.back().attention.query;
  return model.blocks.back().attention.weights(x, x, masks::Causal{});
}

/// Sequences of `length` + 1 tokens below `tokens`, and where the first target stands that counts.
struct Task {
  std::string name;
  std::vector<std::vector<Index>> sequences;
  Index first_target = 0;
};

Task random_task(Index count, Random& random) {
  Task task{"random", {}, 0};
  for (Index i = 0; i < count; ++i) {
    std::vector<Index> sequence(11);
    for (Index& token : sequence) token = random.integer(10);
    task.sequences.push_back(std::move(sequence));
  }
  return task;
}

/// Random tokens, a sign (token 10), and the same again.
Task copy_task(Index count, Index copied, Random& random) {
  Task task{"copy", {}, copied};
  const auto length = static_cast<std::size_t>(copied);
  for (Index i = 0; i < count; ++i) {
    std::vector<Index> sequence(2 * length + 1, 10);
    for (std::size_t at = 0; at < length; ++at) {
      sequence[at] = sequence[at + length + 1] = random.integer(10);
    }
    task.sequences.push_back(std::move(sequence));
  }
  return task;
}

/// The targets of a batch that can be known.
TokenBatch batch_of(const Task& task, std::span<const Index> chosen) {
  TokenBatch batch = next_token_batch(task.sequences, chosen);
  for (Index row = 0; row < batch.targets.extent(0); ++row) {
    for (Index i = 0; i < task.first_target; ++i) batch.targets(row, i) = -100;
  }
  return batch;
}

struct Results {
  std::vector<double> losses;  // mean of each epoch
  std::vector<Index> truth, predicted;
  Tensor<double, 2> weights;  // head 0 of one sequence
};

/// The likeliest token behind token `at` of a row.
template <class T>
Index likeliest(const Tensor<T, 3>& logits, Index row, Index at) {
  return example::likeliest(as_span(logits.select(0, row).select(0, at)));
}

/// The share of tokens that the model finds, of those that can be known.
template <class Model>
double accuracy(const Model& model, const Task& task) {
  std::vector<Index> all(task.sequences.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Index>(i);
  const TokenBatch batch = batch_of(task, all);
  typename Model::Saved saved;
  const auto logits = model.forward(batch.tokens, masks::Causal{}, saved);
  Index right = 0, count = 0;
  for (Index row = 0; row < logits.extent(0); ++row) {
    for (Index i = task.first_target; i < logits.extent(1); ++i, ++count) {
      right += likeliest(logits, row, i) == batch.targets(row, i) ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

template <class T, class Model>
Results look_at(const Model& model, const Task& task) {
  const std::vector<Index> first = {0};
  const TokenBatch batch = batch_of(task, first);
  typename Model::Saved saved;
  const auto logits = model.forward(batch.tokens, masks::Causal{}, saved);
  Results results;
  for (Index i = task.first_target; i < logits.extent(1); ++i) {
    results.truth.push_back(batch.targets(0, i));
    results.predicted.push_back(likeliest(logits, 0, i));
  }
  const Tensor<T, 4> weights = weights_of(model, saved);
  results.weights = Tensor<double, 2>({weights.extent(2), weights.extent(3)});
  copy(weights.select(0, 0).select(0, 0), results.weights);
  return results;
}

/// Trains as long as `options` say, a line an epoch.
template <class T, class Model>
Results learn(Model& model, const Task& task, const Options& options, const Schedule& schedule) {
  Adam optimizer(model);
  auto gradients = zeros_like(model);
  const Index length = std::ssize(task.sequences.front());
  const std::vector<Index> lengths(task.sequences.size(), length);
  std::vector<double> losses;
  Index step = 0;
  example::catch_interrupts();
  example::Progress progress(
      task.name,
      options.epochs * std::ssize(make_batches(lengths, 0, {.batch_size = options.batch_size})));
  const auto begin = std::chrono::steady_clock::now();
  for (Index epoch = 1; epoch <= options.epochs && !example::stop_asked(); ++epoch) {
    double sum = 0;
    Index done = 0;
    const auto batches =
        make_batches(lengths, epoch, {.batch_size = options.batch_size, .seed = options.seed});
    for (const auto& chosen : batches) {
      // [step]
      const TokenBatch batch = batch_of(task, chosen);
      typename Model::Saved saved;
      const auto logits = model.forward(batch.tokens, masks::Causal{}, saved);
      const auto [loss, grad_logits] = cross_entropy(logits, batch.targets);
      set_zero(gradients);
      model.backward(grad_logits, saved, gradients);
      optimizer.step(model, gradients, {.learning_rate = schedule(step++)});
      // [/step]
      sum += loss;
      ++done;
      progress.step();
      if (example::stop_asked()) break;
    }
    losses.push_back(sum / static_cast<double>(done));
    progress.clear();
    std::printf("epoch %2td  loss %.4f\n", epoch, losses.back());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!options.quick) {
    std::printf("%td steps in %.2f s, %.0f tokens a second\n", step, seconds.count(),
                static_cast<double>(step * options.batch_size * (length - 1)) / seconds.count());
  }
  Results results = look_at<T>(model, task);
  results.losses = std::move(losses);
  return results;
}

/// The pictures of the article: three charts and a heatmap.
std::vector<Chart> charts_of(const Results& results, const Task& task) {
  Chart loss{.series = {series_of(results.losses, "", 1)},
             .title = "Training loss, " + task.name + " sequences",
             .x_title = "epoch",
             .y_title = "loss"};
  const auto first = static_cast<double>(task.first_target);
  Chart generated{.series = {series_of(results.truth, "ground truth", first),
                             series_of(results.predicted, "predicted", first)},
                  .title = "Generated sequence and ground truth",
                  .x_title = "time step",
                  .y_title = "token"};
  Chart time{.series = {},
             .title = "Attention over time",
             .x_title = "key position",
             .y_title = "weight",
             .low = 0,
             .high = 1};
  for (Index query = 0; query < results.weights.extent(0); query += 2) {
    const auto seen = results.weights.select(0, query).slice(0, 0, query + 1);
    time.series.push_back(series_of(seen, "query " + std::to_string(query)));
  }
  return {loss, generated, time};
}

void show(const Results& results, const Task& task, const Options& options) {
  const TerminalOptions terminal = terminal_options(options.color);
  const auto charts = charts_of(results, task);
  Heatmap heatmap = heatmap_of(results.weights, {}, "Attention weights, head 0");
  heatmap.numbers = results.weights.extent(0) <= 12;  // where they fit
  std::printf("\n%s\n%s\n", to_terminal(charts[0], terminal).c_str(),
              to_terminal(heatmap, terminal).c_str());
  std::printf("%s\n%s\n", to_terminal(charts[1], terminal).c_str(),
              to_terminal(charts[2], terminal).c_str());
  const auto write = [&](const std::string& name, const auto& picture) {
    options.folder.write(task.name + "_" + name, picture);
  };
  write("loss", charts[0]);
  write("attention", heatmap);
  write("generated", charts[1]);
  write("attention_over_time", charts[2]);
}

/// Beside guessing, 10 %.
template <class Model>
void compare(const Model& model, const Task& learned, const Task& unseen) {
  std::printf("right tokens: %.1f %% of the sequences learned from, %.1f %% of %td new ones\n\n",
              100 * accuracy(model, learned), 100 * accuracy(model, unseen),
              std::ssize(unseen.sequences));
}

template <class T>
void run(const Options& options) {
  options.folder.check();
  Random random(options.seed), other(options.seed, 1);  // the other one: for new sequences
  const Index count = options.quick ? 320 : 1000;
  std::printf(
      "1. Random sequences: nothing to learn but that ten tokens come equally often\n"
      "   (ln 10 = 2.3026), and by heart.\n\n");
  {
    const Task task = random_task(count, random);
    SimpleDecoder<T> model(10, random);
    show(learn<T>(model, task, options, schedules::Constant{.rate = 1e-3}), task, options);
    compare(model, task, random_task(200, other));
  }
  if (example::stop_asked()) return;
  const std::string copied = options.copied == 5 ? "five" : std::to_string(options.copied);
  std::printf(
      "2. Copies: %s tokens, a sign, the %s again. Two blocks with positions, norms and\n"
      "   feed-forward parts; warm-up and cosine annealing.\n\n",
      copied.c_str(), copied.c_str());
  const Task task = copy_task(count, options.copied, random);
  LanguageModel<T> model({.vocab_size = 11,
                          .layers = 2,
                          .max_length = 2 * options.copied,
                          .init_std = 0.1,
                          .block = {.model_dim = 64, .heads = 4}},
                         random);
  const Index steps = options.epochs * ((count + options.batch_size - 1) / options.batch_size);
  const Schedule schedule =
      schedules::warm_up(steps / 20, schedules::Cosine{.rate = 5e-3, .steps = steps - steps / 20});
  const Results results = learn<T>(model, task, options, schedule);
  show(results, task, options);
  compare(model, task, copy_task(200, options.copied, other));
  std::printf("final loss %.4f\n", results.losses.back());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "A small decoder learns random sequences of ten tokens, as far as they can be learned, and\n"
      "then to copy. A log line an epoch, and four pictures of each run.");
  app.add_option("--seed", options.seed, "of data, weights and order");
  example::add_threads(app);
  app.add_option("--epochs", options.epochs).at_least(1);
  app.add_option("--batch", options.batch_size, "sequences a step").at_least(1);
  app.add_option("--copied", options.copied, "tokens to copy; 20: attention over 40 time steps")
      .at_least(1);
  options.folder.add_options(app);
  example::add_color(app, options.color);
  app.add_flag("--quick", options.quick, "fewer sequences; in double, no times");
  return app.run(argc, argv, [&] { options.quick ? run<double>(options) : run<float>(options); });
}
