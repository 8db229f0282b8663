// SPDX-License-Identifier: MIT
// Every allocation of layers, models, training, generation, texts, files and pictures fails once.
#include <unistd.h>

#include <filesystem>

#include <heed/generation.hpp>
#include <heed/io.hpp>
#include <heed/masks.hpp>
#include <heed/models.hpp>
#include <heed/plot.hpp>
#include <heed/plot/png.hpp>
#include <heed/text.hpp>
#include <heed/training.hpp>

#include "faults/failing_memory.hpp"

namespace heed::test {
namespace {

template <class Model>
std::string weights_of(const Model& model) {
  std::string all;
  for_each_parameter([&](std::string_view, const auto& parameter) { all += bytes(parameter); },
                     model);
  return all;
}

Tokens some_tokens(Index batch, Index length, Index vocabulary) {
  Tokens tokens({batch, length});
  for (Index i = 0; i < tokens.size(); ++i) tokens.data()[i] = (i * 7 + 3) % vocabulary;
  return tokens;
}

LanguageModelOptions tiny_options() {
  auto options = LanguageModelOptions::llama();
  options.vocab_size = 11;
  options.block.model_dim = 8;
  options.block.heads = 2;
  options.block.kv_heads = 1;
  options.block.head_dim = 4;
  options.layers = 2;
  options.block.hidden_dim = 9;
  options.max_length = 64;
  return options;
}

template <class Model, class Options>
Model made(const Options& options) {
  Random random(1);
  return Model(options, random);
}

const auto language_model = made<LanguageModel<float>>(tiny_options());
const EncoderDecoderOptions translator_options{
    .source_vocab_size = 5,
    .target_vocab_size = 7,
    .max_length = 30,
    .block = {.model_dim = 8, .heads = 2, .hidden_dim = 9, .norm_before = false}};
const auto translator = made<EncoderDecoder<float>>(translator_options);

const EncoderDecoderMasks translation_masks{masks::Full{}, masks::Causal{}, masks::Full{}};

struct Outcome {
  std::string text;
};
const auto nothing = [] { return Outcome{}; };
const auto outcome = [](const Outcome& result) { return result.text; };
/// For what makes a result out of nothing: `text` holds it in the end.
template <class Call>
void fail_result(const Call& call) {
  fail_every_allocation(
      nothing, [&](Outcome& result) { result.text = call(); }, outcome);
}

class FailingMemoryModels : public FailingMemory {
 protected:
  FailingMemoryModels() {
    // In memory where there is such a folder: saves wait for the disk.
    const std::filesystem::path memory = "/dev/shm";
    folder_ = std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
    folder_ /= "heed_faults_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  ~FailingMemoryModels() override { std::filesystem::remove_all(folder_); }
  std::string file(const char* name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

class FailingMemoryFiles : public FailingMemoryModels {};

TEST_P(FailingMemoryModels, Forward) {
  const Tokens tokens = some_tokens(2, 19, 11), source = some_tokens(2, 9, 5);
  fail_result([&] { return bytes(language_model.forward(tokens, masks::Causal{})); });
  fail_result(
      [&] { return bytes(translator.forward(source, some_tokens(2, 12, 7), translation_masks)); });
  fail_result([&] {
    auto packed = language_model;
    packed.pack();
    return bytes(packed.forward(tokens, masks::last_n(5)));
  });
}

/// A model with its optimizer, and how far it is.
struct Training {
  LanguageModel<float> model = language_model;
  AdamW<LanguageModel<float>> optimizer{model};
  EarlyStopping<LanguageModel<float>> stopping{model};
};
std::string digest(const Training& run) {
  return weights_of(run.model) + weights_of(run.optimizer) + weights_of(run.stopping.best_model()) +
         std::to_string(run.optimizer.steps()) + std::to_string(run.stopping.best_loss()) + ' ' +
         std::to_string(run.stopping.evaluations());
}

double loss_and_gradients(const LanguageModel<float>& model, LanguageModel<float>& gradients) {
  const auto batch = next_token_batch(
      std::vector<std::vector<Index>>{{1, 2, 3, 4, 5, 6, 7}, {3, 2, 1}}, std::vector<Index>{1, 0});
  LanguageModel<float>::Saved saved;
  const auto logits = model.forward(batch.tokens, masks::Causal{}, saved);
  const auto [loss, grad] = cross_entropy(logits, batch.targets);
  model.backward(grad, saved, gradients);
  return loss;
}

TEST_P(FailingMemoryModels, TrainingSteps) {
  fail_every_allocation([] { return Training(); },
                        [](Training& run) {
                          auto gradients = zeros_like(run.model);
                          loss_and_gradients(run.model, gradients);
                          run.optimizer.step(run.model, gradients, {.max_gradient_norm = 1});
                        },
                        digest);
  fail_every_allocation([] { return Training(); },
                        [](Training& run) { run.stopping.update(1, run.model); }, digest);
}

TEST_P(FailingMemoryFiles, Checkpoints) {
  const std::string path = file("run.safetensors");
  Training after;
  auto gradients = zeros_like(after.model);
  loss_and_gradients(after.model, gradients);
  after.optimizer.step(after.model, gradients);
  after.stopping.update(2, after.model);
  const TrainingState state{.step = 1, .notes = {{"name", "a text that takes memory of its own"}}};
  save_checkpoint(path, after.model, after.optimizer, state, after.stopping);
  const auto saved = read_file(path);
  fail_every_allocation(
      [] { return Training(); },
      [&](Training& run) { load_checkpoint(path, run.model, run.optimizer, run.stopping); },
      digest);
  fail_every_allocation(
      [&] {
        write_file(path, std::as_bytes(std::span("old", 3)));
        return Outcome{};
      },
      [&](Outcome&) { save_checkpoint(path, after.model, after.optimizer, state, after.stopping); },
      [&](const Outcome&) {
        const auto now = read_file(path);
        EXPECT_TRUE(now.size() == 3 || now == saved);
        return std::string();
      });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "left over";
}

struct Open {
  Session<float> session;
  Tensor<float, 2> logits;
};
/// What a session would go on with.
std::string digest(const Open& open) {
  auto session = open.session;
  return bytes(open.logits) + bytes(session.step(std::vector<Index>{5, 6})) +
         std::to_string(session.length(0)) + ' ' + std::to_string(session.length(1));
}

TEST_P(FailingMemoryModels, Sessions) {
  const auto make = [] {
    Open open{Session<float>(language_model, {.batch = 2, .page_size = 16}), {}};
    open.session.prefill(std::vector<std::vector<Index>>{{1, 2, 3}, {4}});
    return open;
  };
  const std::vector<std::vector<Index>> next = {{}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}};
  fail_every_allocation(
      make, [&](Open& open) { open.logits = open.session.prefill(next); },
      [](const Open& open) { return digest(open); });
  const auto slides = [] {
    Open open{Session<float>(language_model, {.batch = 2, .max_length = 8, .slide = 4}), {}};
    open.session.prefill(std::vector<std::vector<Index>>{{1, 2, 3, 4, 5, 6}, {4, 5, 6, 7, 8, 9}});
    return open;
  };
  fail_every_allocation(
      slides,
      [](Open& open) {
        open.session.prefill({{7}, {8}});
      },
      [](const Open& open) { return digest(open); });
  fail_every_allocation(
      make,
      [](Open& open) {
        open.session.reorder(std::vector<Index>{1, 1});
      },
      [](const Open& open) { return digest(open); });
}

TEST_P(FailingMemoryModels, Generation) {
  fail_result([] {
    Session<float> session(language_model);
    Random random(4);
    return bytes(generate(session, std::vector<Index>{1, 2},
                          Sampler{samplers::Temperature{.7}, samplers::TopK{5}},
                          {.max_tokens = 6, .sequences = {{1, 1, 1}}}, random)
                     .tokens);
  });
  fail_result([] {
    Session<float> session(language_model, {.batch = 3});
    std::string all;
    for (const Beam& beam :
         beam_search(session, std::vector<Index>{1, 2},
                     {.width = 3, .max_tokens = 5, .end_token = 3, .results = 2})) {
      all += bytes(beam.tokens);
    }
    return all;
  });
  fail_result([] {
    TranslationSession<float> session(translator, some_tokens(2, 9, 5), {.page_size = 16});
    return bytes(session.logits(some_tokens(2, 4, 7)));
  });
}

TEST_P(FailingMemoryFiles, Texts) {
  const std::string text = "Ärger, unaffable naïveté and 3 \xe4\xb8\xad\xe6\x96\x87 in: one!? ";
  const std::string data = HEED_TEST_DATA "/text/";
  const auto both_ways = [&](const auto& tokenizer) {
    const auto tokens = tokenizer.encode(text);
    return bytes(tokens) + tokenizer.decode(tokens);
  };
  fail_result([&] { return both_ways(WordPiece::read(data + "small_vocab.txt")); });
  fail_result([&] { return both_ways(load_tokenizer(Gguf::open(data + "small_bpe.gguf"))); });
  fail_result([&] { return both_ways(CharacterTokenizer(text)); });
  fail_result([&] { return both_ways(ByteTokenizer()); });
}

TEST_P(FailingMemoryFiles, Files) {
  const std::string data = HEED_TEST_DATA "/";
  fail_result([&] { return bytes(load_npy<float, 2>(data + "npy/f4.npy")); });
  const auto names = [](const auto& entries) {
    std::string all;
    for (const auto& entry : entries) all += entry.name;
    return all;
  };
  fail_result([&] {
    return names(load_safetensors(data + "safetensors/all_types.safetensors").entries());
  });
  fail_result([&] { return names(Gguf::open(data + "gguf/all_types.gguf").entries()); });
  const std::string path = file("a.npy");
  const auto written = [&](const auto& write) {
    fail_every_allocation(
        [&] {
          std::filesystem::remove(path);
          return Outcome{};
        },
        [&](Outcome&) { write(); },
        [&](const Outcome&) {
          return std::filesystem::exists(path) ? bytes(read_file(path)) : std::string();
        },
        Failed::may_have_begun);
    EXPECT_LE(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "left over";
  };
  const Tensor<float, 2> values({3, 2}, {1, 2, 3, 4, 5, 6});
  written([&] { write_npy(path, values); });
  written([&] {
    SafetensorsWriter writer;
    writer.add("a", values);
    writer.note("by", "a test");
    writer.write(path);
  });
  written([&] { write_png(path, heatmap_of(values)); });
}

TEST_P(FailingMemoryFiles, Pictures) {
  const Tensor<float, 2> values({3, 2}, {1, 2, 3, 4, 5, 6});
  fail_result([&] { return to_svg(heatmap_of(values)) + to_terminal(heatmap_of(values)); });
  fail_result([] {
    Chart chart;
    chart.title = "a title that takes memory of its own";
    chart.series = {{"loss", {0, 1, 2}, {3, 1, 2}}};
    return to_svg(chart) + to_terminal(chart);
  });
  fail_result([] {
    AttentionPage page;
    page.weights = Tensor<float, 4>({1, 2, 2, 4});
    page.query_labels = {"a", "b"};
    page.key_labels = {"a", "b", "c", "d"};
    return to_html(page);
  });
}

INSTANTIATE_TEST_SUITE_P(OneThread, FailingMemoryFiles, ::testing::Values(1),
                         [](const auto& threads) { return std::to_string(threads.param); });
INSTANTIATE_TEST_SUITE_P(Threads, FailingMemoryModels, ::testing::Values(1, 2),
                         [](const auto& threads) { return std::to_string(threads.param); });

}  // namespace
}  // namespace heed::test
