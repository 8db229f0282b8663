// SPDX-License-Identifier: MIT
// A small GPT learns to write five plays of Shakespeare letter by letter: nanoGPT's setting for a
// laptop (4 blocks, 4 heads, 128 wide, 64 letters at a time, 12 in a batch). What train_char does
// in one process, and train_char_mpi in several.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"
#include "pictures.hpp"

namespace example {

using namespace heed;

struct Options {
  std::uint64_t seed = 1;
  Index steps = 2000;
  Index batch_size = 12;
  Index accumulate = 1;
  Index length = 64;
  Index model_dim = 128;
  Index heads = 4;
  Index layers = 4;
  Index validations = 20;
  double dropout = 0;
  double learning_rate = 1e-3;
  double weight_decay = 0.1;
  Index sample = 300;
  double temperature = 0.8;
  int digits = 3;
  Products products = Products::exact;
  std::string save = "", resume = "";
  std::string data = HEED_EXAMPLE_DATA;
  std::string color = "auto";
  Pictures pictures = {};
  bool quick = false;
};

/// A text as numbers of its letters.
struct Text {
  std::string letters;  // in the order of their codes
  std::vector<Index> train, validation;

  explicit Text(const std::string& path, std::size_t most) {
    const auto bytes = read_file(path);
    const std::size_t count = std::min(most, bytes.size());
    std::array<Index, 256> number{};
    for (std::size_t i = 0; i < count; ++i) number[std::to_integer<std::size_t>(bytes[i])] = 1;
    for (std::size_t code = 0; code < 256; ++code) {
      if (number[code] == 0) continue;
      number[code] = static_cast<Index>(letters.size());
      letters += static_cast<char>(code);
    }
    for (std::size_t i = 0; i < count; ++i) {
      auto& part = i < count * 9 / 10 ? train : validation;
      part.push_back(number[std::to_integer<std::size_t>(bytes[i])]);
    }
  }
  std::string decoded(std::span<const Index> tokens) const {
    std::string text;
    for (const Index token : tokens) text += letters[static_cast<std::size_t>(token)];
    return text;
  }
};

/// Mean loss over windows that are the same at every call.
template <class T>
double validation_loss(const LanguageModel<T>& model, const Text& text, const Options& options) {
  Random random(12345);
  const Index batches = options.quick ? 2 : 20;
  double sum = 0;
  for (Index i = 0; i < batches; ++i) {
    const auto batch = random_windows(text.validation, options.batch_size, options.length, random);
    sum += cross_entropy_loss(model.forward(batch.tokens, masks::Causal{}), batch.targets);
  }
  return sum / static_cast<double>(batches);
}

/// What the model writes behind a new line, reading as much of its own text as it was trained on.
template <class T>
std::string sample(const LanguageModel<T>& model, const Text& text, const Options& options) {
  Session<T> session(model, {.slide = 1});  // always the last letters, as many as fit
  const std::vector<Index> prompt = {0};    // the new line has the lowest code
  Random random(options.seed, 99);
  const Sampler sampler{samplers::Temperature{options.temperature}, samplers::TopP{.p = 0.95}};
  return text.decoded(
      generate(session, prompt, sampler, {.max_tokens = options.sample}, random).tokens);
}

/// In one process the optimizer moves all numbers; on several ranks heed's function divides them.
template <class Model>
const Model& optimizer_part(const Model& model) {
  return model;
}

/// Trains in one process or, if they are given, on several ranks.
template <class T, class... Ranks>
void learn(const Options& options, const Text& text, const Ranks&... ranks) {
  Random weights(options.seed);
  LanguageModel<T> model({.vocab_size = static_cast<Index>(text.letters.size()),
                          .layers = options.layers,
                          .max_length = options.length,
                          .block = {.model_dim = options.model_dim,
                                    .heads = options.heads,
                                    .fused_projection = true,
                                    .dropout = options.dropout,
                                    .attention_dropout = options.dropout}},
                         weights);
  for (auto& block : model.blocks) block.feed_forward.dropout.probability = 0;  // as nanoGPT
  set_products(model, options.products);
  // [optimizer]
  AdamW optimizer(optimizer_part(ranks..., model),
                  {.beta2 = 0.99, .weight_decay = options.weight_decay, .decay_vectors = false});
  TrainingState state;
  if (!options.resume.empty()) state = load_checkpoint(ranks..., options.resume, model, optimizer);
  // [/optimizer]
  std::printf("%zu letters of text, %zu different ones; a model of %td numbers\n",
              text.train.size() + text.validation.size(), text.letters.size(),
              parameter_count(model));
  const Index warm = std::min<Index>(100, options.steps / 10);
  const TrainOptions how{
      .steps = options.steps,
      .first_step = state.step,
      .schedule = schedules::warm_up(warm, schedules::Cosine{.rate = options.learning_rate,
                                                             .least = options.learning_rate / 10,
                                                             .steps = options.steps - warm}),
      .max_gradient_norm = 1,
      .accumulate = options.accumulate};
  // [train]
  const auto compute = [&](Index number, LanguageModel<T>& gradients) {
    // Of its number alone: any rank can compute it. Streams 0 and 99 are of weights and samples.
    Random random(options.seed, 100 + static_cast<std::uint64_t>(number));
    const auto batch = random_windows(text.train, options.batch_size, options.length, random);
    typename LanguageModel<T>::Saved saved;
    const Noise noise{.seed = static_cast<std::uint64_t>(number)};
    const auto logits = model.forward(batch.tokens, masks::Causal{}, noise, saved);
    const auto [loss, grad_logits] = cross_entropy(logits, batch.targets);
    model.backward(grad_logits, saved, gradients);
    return BatchLoss{loss, batch.tokens.size()};
  };
  // [/train]
  Series train_loss{"training", {}, {}}, validation{"validation", {}, {}};
  const Index every = std::max<Index>(
      1, options.steps / std::max<Index>(1, options.quick ? 4 : options.validations));
  catch_interrupts();
  Progress progress("learning", options.steps - how.first_step);
  const Index step_tokens = options.accumulate * options.batch_size * options.length;
  Index tokens = 0;  // since the beginning, and how long they took without validation
  double seconds = 0;
  state.step = train(ranks..., model, optimizer, how, compute, [&](const StepInfo& info) {
    const auto at = static_cast<double>(info.step + 1);
    train_loss.x.push_back(at);
    train_loss.y.push_back(info.loss);
    tokens += step_tokens;
    seconds += static_cast<double>(step_tokens) / info.tokens_per_second;
    progress.step();
    const bool go_on = !stop_asked();
    if ((info.step + 1) % every != 0 && go_on) return true;
    validation.x.push_back(at);
    validation.y.push_back(validation_loss(model, text, options));
    progress.clear();
    std::printf("step %5td  loss %.*f  validation %.*f", info.step + 1, options.digits, info.loss,
                options.digits, validation.y.back());
    options.quick ? std::printf("\n")
                  : std::printf("  %7.0f tokens/s\n", static_cast<double>(tokens) / seconds);
    std::fflush(stdout);
    return go_on;
  });
  const Chart chart{.series = {train_loss, validation},
                    .title = "Loss in nats a letter",
                    .x_title = "step",
                    .y_title = "loss"};
  std::printf("\n%s\n", to_terminal(chart, terminal_options(options.color)).c_str());
  std::printf("%s\n", sample(model, text, options).c_str());
  options.pictures.write(chart);
  if (options.save.empty()) return;
  // What examples/generate needs besides the weights.
  state.notes = {{"heads", std::to_string(options.heads)}, {"letters", text.letters}};
  save_checkpoint(ranks..., options.save, model, optimizer, state);
  std::printf("\nwrote %s\n", options.save.c_str());
}

/// The command line, what it names, and the text; then train(options, text), which calls `learn`
/// with the type of numbers.
template <class Train>
int train_char(int argc, char** argv, const std::string& about, Options options,
               const Train& train) {
  CommandLine app(about);
  app.add_option("--steps", options.steps).at_least(1);
  app.add_option("--batch", options.batch_size, "windows in a batch").at_least(1);
  app.add_option("--accumulate", options.accumulate, "batches a step").at_least(1);
  app.add_option("--length", options.length, "letters of a window").at_least(2);
  app.add_option("--dim", options.model_dim, "width of the model").at_least(1);
  app.add_option("--heads", options.heads).at_least(1);
  app.add_option("--layers", options.layers).at_least(1);
  app.add_option("--dropout", options.dropout, "of activations and of attention weights")
      .between(0., 1.);
  app.add_option("--rate", options.learning_rate, "largest learning rate").between(0., 1000.);
  app.add_option("--decay", options.weight_decay, "weight decay").between(0., 1000.);
  app.add_option("--validations", options.validations, "how often the validation loss is shown")
      .at_least(1);
  app.add_option("--sample", options.sample, "letters to write at the end").at_least(0);
  app.add_option("--temperature", options.temperature).between(1e-6, 1e6);
  app.add_choice<Products>("--products", options.products,
                           {{"exact", Products::exact}, {"bfloat16", Products::bfloat16}},
                           "exact, or bfloat16 for mixed precision");
  app.add_option("--digits", options.digits, "of printed losses").between(1, 17);
  app.add_option("--save", options.save, "write a checkpoint (safetensors) at the end");
  app.add_option("--resume", options.resume, "go on from a checkpoint, with the same bits")
      .existing_file();
  app.add_option("--seed", options.seed, "of weights, windows and samples");
  add_threads(app);
  app.add_option("--data", options.data, "folder of shakespeare.txt");
  options.pictures.add_options(app, "the loss");
  add_color(app, options.color);
  app.add_flag("--quick", options.quick, "a smaller model and text, few steps; in double");
  return app.run(argc, argv, [&] {
    if (options.quick) {
      options.steps = 120;
      options.model_dim = 32;
      options.layers = 2;
      options.length = 32;
      options.sample = 120;
    }
    check_can_write(options.save);
    options.pictures.check();
    const Text text(options.data + "/shakespeare.txt", options.quick ? 60000 : std::string::npos);
    return train(options, text);
  });
}

}  // namespace example
