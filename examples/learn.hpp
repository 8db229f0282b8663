// SPDX-License-Identifier: MIT
// What the examples share that train one small model under several masks: the same weights to begin
// with, the same order of batches, so that the mask alone makes the difference.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/heed.hpp>

#include "common.hpp"

namespace example {

/// In double: what is printed is then the same on every machine.
using Model = heed::LanguageModel<double>;

/// What a step learns from. Targets of -100 do not count.
struct Batch {
  heed::Tokens tokens, targets;  // (texts, length)
  heed::Mask mask = heed::masks::Causal{};
  heed::Positions positions = {};
};

/// Two blocks of two heads, with learned positions.
inline heed::LanguageModelOptions small_model(heed::Index vocabulary, heed::Index length) {
  return {.vocab_size = vocabulary,
          .layers = 2,
          .max_length = length,
          .init_std = 0.1,
          .block = {.model_dim = 32, .heads = 2}};
}

struct Lessons {
  std::string name;  // of what is learned
  heed::Index steps = 400;
  double rate = 5e-3;  // the highest; warm-up before it, a cosine behind
  std::uint64_t seed = 1;
};

/// A model that was trained on `make_batch(random)`, `lessons.steps` times.
template <class MakeBatch>
Model learned(const heed::LanguageModelOptions& shape, const Lessons& lessons,
              const MakeBatch& make_batch) {
  heed::Random weights(lessons.seed), data(lessons.seed, 1);
  Model model(shape, weights);
  heed::AdamW optimizer(model, {.beta2 = 0.99});
  const heed::Index warm = lessons.steps / 10;
  const heed::TrainOptions how{
      .steps = lessons.steps,
      .schedule = heed::schedules::warm_up(
          warm, heed::schedules::Cosine{.rate = lessons.rate, .steps = lessons.steps - warm}),
      .max_gradient_norm = 1};
  catch_interrupts();
  Progress progress(lessons.name, lessons.steps);
  heed::train(
      model, optimizer, how,
      [&](heed::Index, Model& gradients) {
        const Batch batch = make_batch(data);
        Model::Saved saved;
        const auto logits = model.forward(batch.tokens, batch.mask, batch.positions, {}, saved);
        const auto [loss, grad_logits] = heed::cross_entropy(logits, batch.targets);
        model.backward(grad_logits, saved, gradients);
        return heed::BatchLoss{loss, batch.tokens.size()};
      },
      [&](const heed::StepInfo&) {
        progress.step();
        return !stop_asked();
      });
  return model;
}

/// The likeliest of the classes of a row of logits.
template <class T>
heed::Index likeliest(std::span<T> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

/// How many targets of a batch are the likeliest tokens, and how many there are.
struct Score {
  heed::Index right = 0, asked = 0;
  double percent() const {
    return 100 * static_cast<double>(right) / static_cast<double>(std::max<heed::Index>(1, asked));
  }
  Score& operator+=(const Score& more) {
    right += more.right;
    asked += more.asked;
    return *this;
  }
};
inline Score score(const Model& model, const Batch& batch) {
  const auto logits = model.forward(batch.tokens, batch.mask, batch.positions);
  const auto classes = static_cast<std::size_t>(logits.extent(2));
  Score score;
  for (heed::Index i = 0; i < batch.targets.size(); ++i) {
    const heed::Index target = batch.targets.data()[i];
    if (target < 0) continue;
    const std::span<const double> row(logits.data() + i * logits.extent(2), classes);
    score += {likeliest(row) == target, 1};
  }
  return score;
}

/// What the model writes behind each prompt, `count` of the likeliest tokens one by one, with a
/// cache. Under `mask` as in training.
inline std::vector<std::vector<heed::Index>> written(
    const Model& model, const heed::Mask& mask, std::span<const std::vector<heed::Index>> prompts,
    heed::Index count) {
  heed::Session<double> session(model,
                                {.batch = static_cast<heed::Index>(prompts.size()), .mask = mask});
  std::vector<std::vector<heed::Index>> texts(prompts.size());
  auto logits = session.prefill(prompts);
  for (heed::Index i = 0; i < count; ++i) {
    std::vector<heed::Index> next;
    for (std::size_t item = 0; item < texts.size(); ++item) {
      next.push_back(likeliest(as_span(logits.select(0, static_cast<heed::Index>(item)))));
      texts[item].push_back(next.back());
    }
    if (i + 1 < count) logits = session.step(next);
  }
  return texts;
}

/// --steps, --seed, --threads and --quick; `quick` steps with the last.
inline void add_lessons(CommandLine& app, heed::Index& steps, std::uint64_t& seed,
                        heed::Index quick) {
  app.add_option("--steps", steps, "of training").at_least(1);
  app.add_option("--seed", seed, "of weights and batches");
  add_threads(app);
  app.add_flag(
      "--quick", [&steps, quick] { steps = quick; }, "fewer steps");
}

/// Words and their numbers.
class Words {
 public:
  /// The number of a word, which is new if it was not there.
  heed::Index number(std::string_view word) {
    const auto at = std::find(words_.begin(), words_.end(), word);
    if (at == words_.end()) return words_.emplace_back(word), size() - 1;
    return at - words_.begin();
  }
  /// The numbers of words between spaces.
  std::vector<heed::Index> numbers(std::string_view text) {
    std::vector<heed::Index> numbers;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      if (end > begin) numbers.push_back(number(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return numbers;
  }
  const std::string& operator[](heed::Index number) const {
    return words_[static_cast<std::size_t>(number)];
  }
  heed::Index size() const { return static_cast<heed::Index>(words_.size()); }

 private:
  std::vector<std::string> words_;
};

}  // namespace example
