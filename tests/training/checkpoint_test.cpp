// SPDX-License-Identifier: MIT
#include <heed/training/checkpoint.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <training/tiny_model.hpp>

#include <heed/core/parallel.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/models/language_model.hpp>
#include <heed/training/losses.hpp>
#include <heed/training/optimizers.hpp>
#include <heed/training/train.hpp>

#include "support/file_error.hpp"

namespace heed::detail {
namespace {

/// What matching a TinyModel<float> with a file says.
std::string verdict(const SafetensorsWriter& writer) {
  const Safetensors file(SharedBytes(writer.bytes()), "x");
  ParameterMatch match(file);
  TinyModel<float> model;
  match.expect("m.", model);
  try {
    match.finish("x");
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(ParameterMatch, NamesWhatIsMissingOtherOrTooMuch) {
  SafetensorsWriter writer;
  writer.add("m.weight", Tensor<float, 2>({3, 4}));
  EXPECT_EQ(verdict(writer), "x: does not match the model:\n  missing: m.bias (5)");
  writer.add("m.bias", Tensor<double, 1>({5}));
  writer.add("bias", Tensor<float, 1>({5}));
  EXPECT_EQ(verdict(writer),
            "x: does not match the model:\n"
            "  other shape or type: m.bias is F64 (5), expected F32 (5)\n"
            "  not in the model: bias (5)");
}

TEST(ParameterMatch, ListsFiftyOfManyNames) {
  SafetensorsWriter writer;
  writer.add("m.weight", Tensor<float, 2>({3, 4}));
  writer.add("m.bias", Tensor<float, 1>({5}));
  EXPECT_EQ(verdict(writer), "");
  for (int i = 0; i < 1000; ++i) writer.add("n" + std::to_string(i), Tensor<float, 1>({1}));
  const std::string said = verdict(writer);
  EXPECT_NE(said.find("\n  not in the model: n0 (1)\n"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("\n  and 950 more")) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 51);
}

}  // namespace
}  // namespace heed::detail

namespace heed {
namespace {

using detail::streams_of;

class Checkpoint : public ::testing::Test {
 protected:
  ~Checkpoint() override { std::filesystem::remove(path_); }
  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("heed_checkpoint_" + std::to_string(::getpid()) + ".safetensors"))
                          .string();
};

template <class Model>
bool same_bits(const Model& a, const Model& b) {
  bool same = true;
  for_each_parameter(
      [&](std::string_view, const auto& x, const auto& y) {
        same = same && std::memcmp(x.data(), y.data(),
                                   static_cast<std::size_t>(x.size()) * sizeof(*x.data())) == 0;
      },
      a, b);
  return same;
}

/// A run whose gradients depend on weights, data order and random numbers, as dropout's would.
struct TrainingRun {
  TinyModel<float> model;
  AdamW<TinyModel<float>> optimizer;
  TrainingState state;

  explicit TrainingRun(std::uint64_t seed)
      : model(start(seed)), optimizer(model), state{.random = Random(seed)} {}

  static TinyModel<float> start(std::uint64_t seed) {
    Random random(seed, 1);
    return random_tiny_model<float>(random);
  }
  void steps(Index count) {
    const std::vector<Index> lengths(7, 1);
    for (Index i = 0; i < count; ++i) {
      const auto batches = make_batches(lengths, state.epoch, {.batch_size = 2, .seed = 3});
      const Index item = batches[static_cast<std::size_t>(state.batch)][0];
      TinyModel<float> gradients = model;
      for (float& value : gradients.weight) {
        value = value * static_cast<float>(item) + state.random.normal<float>();
      }
      optimizer.step(model, gradients,
                     {.learning_rate = 0.1 / static_cast<double>(state.step + 1)});
      ++state.step;
      if (++state.batch == static_cast<Index>(batches.size())) {
        state.batch = 0;
        ++state.epoch;
      }
    }
  }
};

TEST_F(Checkpoint, ResumeIsBitwise) {
  TrainingRun whole(5), first(5);
  whole.steps(30);
  first.steps(13);
  first.state.notes = {{"heads", "4"}, {"letters", "\n \"\\aé"}, {"", "unnamed"}};
  save_checkpoint(path_, first.model, first.optimizer, first.state);
  TrainingRun second(99);  // other weights, moments and random numbers, all replaced
  second.steps(3);
  const Index threads = thread_count();
  set_thread_count(threads + 1);
  second.state = load_checkpoint(path_, second.model, second.optimizer);
  EXPECT_EQ(second.state.step, 13);
  EXPECT_EQ(second.state.epoch, 3);
  EXPECT_EQ(second.optimizer.steps(), 13);
  EXPECT_EQ(second.state.notes, first.state.notes);
  second.steps(17);
  set_thread_count(threads);
  EXPECT_TRUE(same_bits(whole.model, second.model));
  EXPECT_TRUE(same_bits(whole.optimizer, second.optimizer));
  EXPECT_EQ(whole.state.random.state(), second.state.random.state());
}

/// A decoder with dropout, as a program would make it anew after a restart.
struct DecoderRun {
  explicit DecoderRun(std::uint64_t seed = 7) : weights(seed) {}

  Random weights;
  LanguageModel<float> model{
      {.vocab_size = 11,
       .layers = 2,
       .max_length = 6,
       .block = {.model_dim = 16, .heads = 2, .dropout = 0.2, .attention_dropout = 0.1}},
      weights};
  AdamW<LanguageModel<float>> optimizer{model};
  TrainingState state{.random = Random(8)};
  std::vector<double> losses;

  void train_to(Index steps) {
    const std::vector<Index> text = {1, 5, 2, 9, 10, 3, 3, 7, 0, 4, 6, 8, 1, 2, 5, 9};
    const TrainOptions options{
        .steps = steps,
        .first_step = state.step,
        .schedule = schedules::warm_up(2, schedules::Cosine{.rate = 1e-2, .steps = 20})};
    state.step = train(
        model, optimizer, options,
        [&](Index step, LanguageModel<float>& gradients) {
          const auto batch = random_windows(text, 4, 6, state.random);
          LanguageModel<float>::Saved saved;
          const Noise noise{.seed = static_cast<std::uint64_t>(step)};
          const auto logits = model.forward(batch.tokens, masks::Causal{}, noise, saved);
          const auto [loss, grad_logits] = cross_entropy(logits, batch.targets);
          model.backward(grad_logits, saved, gradients);
          return BatchLoss{loss, batch.tokens.size()};
        },
        [&](const StepInfo& info) { losses.push_back(info.loss); });
  }
};

TEST_F(Checkpoint, ADecoderWithDropoutResumesBitwiseOnOtherThreads) {
  const Index threads = thread_count();
  set_thread_count(1);
  DecoderRun whole, first;
  whole.train_to(12);
  first.train_to(5);
  save_checkpoint(path_, first.model, first.optimizer, first.state);
  set_thread_count(3);
  DecoderRun second(99);  // other weights, and other streams of dropout
  second.state = load_checkpoint(path_, second.model, second.optimizer);
  second.train_to(12);
  set_thread_count(threads);
  EXPECT_TRUE(same_bits(whole.model, second.model));
  EXPECT_TRUE(same_bits(whole.optimizer, second.optimizer));
  ASSERT_EQ(second.losses.size(), 7u);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(second.losses[i], whole.losses[i + 5]);
  EXPECT_LT(whole.losses.back(), whole.losses.front());
}

/// The same with a validation loss, that of the text backwards, after every second step.
struct WatchedRun : DecoderRun {
  using DecoderRun::DecoderRun;

  EarlyStopping<LanguageModel<float>> stopping{model, {.patience = 3}};
  bool stopped = false;

  void watch_to(Index steps) {
    const Tokens text({1, 6}, {9, 5, 2, 1, 8, 6}), next({1, 6}, {5, 2, 1, 8, 6, 4});
    while (!stopped && state.step < steps) {
      train_to(state.step + 2);
      const auto logits = model.forward(text, masks::Causal{});
      stopped = stopping.update(cross_entropy_loss(logits, next), model);
    }
  }
};

TEST_F(Checkpoint, EarlyStoppingResumesBitwiseWithItsBestWeights) {
  const Index threads = thread_count();
  set_thread_count(2);
  WatchedRun whole;
  whole.watch_to(100);
  const Index last = whole.state.step;
  ASSERT_TRUE(whole.stopped && last > 8 && last < 100) << last;
  for (const Index stop : {Index{0}, Index{2}, last - 4, last - 2, last}) {
    set_thread_count(1);
    WatchedRun first;
    first.watch_to(stop);
    save_checkpoint(path_, first.model, first.optimizer, first.state, first.stopping);
    set_thread_count(3);
    WatchedRun second(99);
    for (float& value : second.model.blocks[0].attention.out.weight) value += 1;
    second.stopping = EarlyStopping<LanguageModel<float>>(second.model, {.patience = 3});
    second.state = load_checkpoint(path_, second.model, second.optimizer, second.stopping);
    second.stopped = stop == last;
    second.watch_to(100);
    EXPECT_EQ(second.state.step, last) << "stopped at another step";
    EXPECT_TRUE(same_bits(whole.model, second.model)) << stop;
    EXPECT_TRUE(same_bits(whole.stopping.best_model(), second.stopping.best_model())) << stop;
    EXPECT_EQ(streams_of(whole.stopping), streams_of(second.stopping)) << stop;
    EXPECT_EQ(whole.stopping.best_loss(), second.stopping.best_loss());
    EXPECT_EQ(whole.stopping.best_evaluation(), second.stopping.best_evaluation());
    EXPECT_EQ(whole.stopping.evaluations(), second.stopping.evaluations());
  }
  EXPECT_FALSE(same_bits(whole.model, whole.stopping.best_model()));
  set_thread_count(threads);
}

/// A copy of a checkpoint with another text for its streams of dropout; empty: without any.
void change_streams(const std::string& path, const std::string& text) {
  const Safetensors saved = load_safetensors(path);
  SafetensorsWriter changed;
  for (const auto& entry : saved.entries()) {
    changed.add_bytes(entry.name, entry.type, entry.shape(), saved.bytes(entry.name));
  }
  for (const auto& [key, note] : saved.metadata()) {
    if (key != "dropout_streams") changed.note(key, note);
  }
  if (!text.empty()) changed.note("dropout_streams", text);
  changed.write(path);
}

TEST_F(Checkpoint, StreamsOfDropoutAreThoseOfTheModelOrNone) {
  const DecoderRun saved;
  const auto streams = streams_of(saved.model);
  EXPECT_EQ(streams.size(), 1 + 2 * (1 + 2 + 1u)) << "embeddings; attention, residuals, inner";
  save_checkpoint(path_, saved.model, saved.optimizer, saved.state);
  DecoderRun other(99);
  const auto own = streams_of(other.model);
  EXPECT_NE(own, streams);
  for (const char* text : {"1 2 3", "1 2 3 4 5 6 7 8 9 10", "1,2", "-1 2 3 4 5 6 7 8 9", " ",
                           "1  2 3 4 5 6 7 8", "99999999999 2 3 4 5 6 7 8 9"}) {
    change_streams(path_, text);
    const auto before = other.model;
    EXPECT_THROW(load_checkpoint(path_, other.model, other.optimizer), FileError) << text;
    EXPECT_TRUE(same_bits(before, other.model));
    EXPECT_EQ(streams_of(other.model), own);
  }
  change_streams(path_, "");  // as heed 0.1 wrote it
  load_checkpoint(path_, other.model, other.optimizer);
  EXPECT_TRUE(same_bits(saved.model, other.model));
  EXPECT_EQ(streams_of(other.model), own);
}

TEST_F(Checkpoint, EarlyStoppingIsReadAsItWasWritten) {
  TinyModel<double> model;
  Sgd optimizer(model);
  EarlyStopping stopping(model);
  save_checkpoint(path_, model, optimizer, {});
  EXPECT_THROW(load_checkpoint(path_, model, optimizer, stopping), FileError) << "not in the file";
  stopping.update(NAN, model);  // no best evaluation yet, a loss of +inf
  save_checkpoint(path_, model, optimizer, {.step = 4}, stopping);
  EXPECT_THROW(load_checkpoint(path_, model, optimizer), FileError) << "more than was asked for";
  EarlyStopping<TinyModel<double>> other(model, {.patience = 9});
  EXPECT_EQ(load_checkpoint(path_, model, optimizer, other).step, 4);
  EXPECT_EQ(other.evaluations(), 1);
  EXPECT_EQ(other.best_evaluation(), 0);
  EXPECT_EQ(other.best_loss(), INFINITY);
  for (const EarlyStoppingState& wrong :
       {EarlyStoppingState{1, 3, 2}, EarlyStoppingState{NAN, 1, 2}}) {
    stopping.set_state(wrong);
    save_checkpoint(path_, model, optimizer, {}, stopping);
    other.update(0.5, model);
    const EarlyStoppingState before = other.state();
    EXPECT_THROW(load_checkpoint(path_, model, optimizer, other), FileError);
    EXPECT_EQ(other.evaluations(), before.evaluations) << "touched by a file that was refused";
  }
}

TEST_F(Checkpoint, WeightsKeepEveryBit) {
  Random random(1);
  auto model = random_tiny_model<double>(random);
  model.weight(0, 0) = NAN;
  model.weight(0, 1) = -0.0;
  model.bias(1) = 5e-324;
  save_weights(path_, model);
  TinyModel<double> loaded;
  load_weights(path_, loaded);
  EXPECT_TRUE(same_bits(model, loaded));
}

struct Other {
  Tensor<double, 2> weight{Extents<2>{4, 3}};
  Tensor<float, 1> bias{{5}};
  Tensor<double, 1> extra{{1}};
  static auto members(auto& model) {
    return Members{member("weight", model.weight), member("bias", model.bias),
                   member("extra", model.extra)};
  }
};

template <class T, class Narrow>
void expect_narrow_weights(const std::string& path, ElementType type) {
  Random random(7);
  auto expected = random_tiny_model<float>(random);
  save_weights(path, expected, type);
  for_each_parameter(
      [](std::string_view, auto& parameter) {
        for (float& value : parameter) value = Narrow(value);
      },
      expected);
  TinyModel<T> read;
  load_weights(path, read);
  const auto equal = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin());
  };
  EXPECT_TRUE(equal(read.weight, expected.weight));
  EXPECT_TRUE(equal(read.bias, expected.bias));
}

TEST_F(Checkpoint, WeightsInNarrowTypesAreWidened) {
  expect_narrow_weights<float, bfloat16>(path_, ElementType::bf16);
  expect_narrow_weights<float, float16>(path_, ElementType::f16);
  expect_narrow_weights<double, bfloat16>(path_, ElementType::bf16);
  expect_narrow_weights<double, float>(path_, ElementType::f32);
  EXPECT_THROW(save_weights(path_, TinyModel<float>(), ElementType::i32), FileError);
}

TEST_F(Checkpoint, ListsAllThatDoesNotMatchAndTouchesNothing) {
  save_weights(path_, TinyModel<double>());
  Other other;
  other.weight(0, 0) = 3;
  try {
    load_weights(path_, other);
    ADD_FAILURE();
  } catch (const FileError& error) {
    EXPECT_EQ(error.what(), path_ +
                                ": does not match the model:"
                                "\n  other shape or type: weight is F64 (3, 4), expected F64 (4, 3)"
                                "\n  other shape or type: bias is F64 (5), expected F32 (5)"
                                "\n  missing: extra (1)");
  }
  EXPECT_EQ(other.weight(0, 0), 3);
  save_weights(path_, Other());
  TinyModel<double> tiny;
  EXPECT_THROW(load_weights(path_, tiny), FileError);
}

TEST_F(Checkpoint, RefusesWhatIsNone) {
  TinyModel<double> model;
  Sgd optimizer(model);
  EXPECT_THROW(load_checkpoint(path_, model, optimizer), FileError) << "no file";
  save_weights(path_, model);
  EXPECT_THROW(load_checkpoint(path_, model, optimizer), FileError) << "weights alone";
  const Adam other(model);
  save_checkpoint(path_, model, other, {});
  EXPECT_THROW(load_checkpoint(path_, model, optimizer), FileError)
      << "another optimizer's moments";
  for (const char* step : {"", "x", "-1", "1 ", "99999999999999999999"}) {
    SafetensorsWriter writer;
    writer.note("heed_checkpoint", "1");
    writer.note("step", step);
    writer.write(path_);
    try {
      load_checkpoint(path_, model, optimizer);
      ADD_FAILURE() << step;
    } catch (const FileError& error) {
      EXPECT_EQ(error.what(), path_ + ": no checkpoint: 'step' is '" + step + "'");
    }
  }
}

TEST_F(Checkpoint, TextsOfAFileStandInMessagesOnOneLineAndCut) {
  TinyModel<double> model;
  Sgd optimizer(model);
  SafetensorsWriter notes;
  notes.note("heed_checkpoint", "1\n\x1b[2J" + std::string(100000, 'x'));
  notes.write(path_);
  const auto note = test::file_error_of([&] { load_checkpoint(path_, model, optimizer); });
  EXPECT_NE(note.find("is '1\\x0a\\x1b[2Jxxx"), std::string::npos) << note.substr(0, 300);
  EXPECT_LT(note.size(), path_.size() + 200);
  SafetensorsWriter names;
  names.add("one\ntwo" + std::string(100000, 'x'), Tensor<float, 1>({1}));
  names.write(path_);
  const auto name = test::file_error_of([&] { load_weights(path_, model); });
  EXPECT_NE(name.find("not in the model: one\\x0atwoxxx"), std::string::npos);
  EXPECT_LT(name.size(), path_.size() + 500);
}

TEST_F(Checkpoint, HoldsSoManyNotes) {
  TinyModel<double> model;
  Sgd optimizer(model);
  TrainingState state;
  for (int i = 0; i < 4096; ++i) state.notes[std::to_string(i)] = "x";
  save_checkpoint(path_, model, optimizer, state);
  EXPECT_EQ(load_checkpoint(path_, model, optimizer).notes, state.notes);
  state.notes["one more"] = "x";
  EXPECT_NE(test::file_error_of([&] {
              save_checkpoint(path_, model, optimizer, state);
            }).find("at most 4096"),
            std::string::npos);
  EXPECT_EQ(load_checkpoint(path_, model, optimizer).notes.size(), 4096u);
  SafetensorsWriter notes;  // as save_checkpoint does, but with one note too many
  const Safetensors saved = load_safetensors(path_);
  for (const auto& entry : saved.entries()) {
    notes.add_bytes(entry.name, entry.type, entry.shape(), saved.bytes(entry.name));
  }
  for (const auto& [key, text] : saved.metadata()) notes.note(key, text);
  notes.note("note.one more", "x");
  notes.write(path_);
  EXPECT_NE(test::file_error_of([&] {
              load_checkpoint(path_, model, optimizer);
            }).find("more than 4096 notes"),
            std::string::npos);
}

}  // namespace
}  // namespace heed
