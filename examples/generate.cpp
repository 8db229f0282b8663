// SPDX-License-Identifier: MIT
// Writes on behind a prompt, with what train_char saved, or with a published model: the folder of a
// Llama, Mistral, Qwen or GPT-2, or a Llama in a GGUF file.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/pretrained.hpp>
#include <heed/text.hpp>

#include "character_stream.hpp"
#include "common.hpp"
#include "real_models.hpp"

namespace {

using namespace heed;

struct Options {
  std::string file, prompt = "\n";
  Index max_tokens = 200, top_k = 0;
  double temperature = 0.8, top_p = 0.95;
  std::uint64_t seed = 1;
  Products products = Products::exact;
};

Sampler sampler_of(const Options& options) {
  if (options.temperature == 0) return Sampler({samplers::Greedy{}});
  std::vector<SamplingStep> steps = {samplers::Temperature{options.temperature}};
  if (options.top_k > 0) steps.push_back(samplers::TopK{options.top_k});
  steps.push_back(samplers::TopP{options.top_p});
  return Sampler(steps);
}

/// Where the text is longer than the model's context, the older half of this leaves: of a prompt
/// too. Caches hold no more than the text.
template <class T, class Text>
void write(const LanguageModel<T>& model, const std::vector<Index>& prompt, const Options& options,
           const StopRules& rules, Text&& text_of) {
  const Index most = model.options.max_length;
  const Index length = static_cast<Index>(prompt.size()) + std::min(options.max_tokens, most);
  const Index longest = std::clamp<Index>(length, 1, most);
  // [slide]
  Session<T> session(model, {.max_length = longest, .slide = std::max<Index>(1, longest / 2)});
  // [/slide]
  Random random(options.seed);
  example::CharacterStream out;
  out.feed(options.prompt);
  generate(session, prompt, sampler_of(options), rules, random,
           [&](Index token) { out.feed(text_of(token)); });
  out.feed("\n");
}

/// A model of the shape that a checkpoint's tensors tell; how many heads it has is noted.
template <class T>
LanguageModel<T> model_of(const Safetensors& file, Index heads) {
  const auto shape_of = [&](const char* name) { return file.entry(name).shape(); };
  const auto embedding = shape_of("model.embedding.weight");
  Index blocks = 0;
  while (file.contains("model.blocks." + std::to_string(blocks) + ".feed_forward.up.bias")) {
    ++blocks;
  }
  Random any(0);
  return LanguageModel<T>(
      {.vocab_size = embedding[0],
       .layers = blocks,
       .max_length = shape_of("model.positions.weight")[0],
       .block = {.model_dim = embedding[1],
                 .heads = heads,
                 .hidden_dim = shape_of("model.blocks.0.feed_forward.up.bias")[0],
                 .fused_projection =
                     file.contains("model.blocks.0.attention.query_key_value.weight")}},
      any);
}

template <class T>
void write_from_checkpoint(const Safetensors& file, const Options& options) {
  const auto notes = file.metadata();
  if (!notes.contains("note.heads") || !notes.contains("note.letters")) {
    throw std::invalid_argument(options.file + ": not a checkpoint of train_char");
  }
  auto model = model_of<T>(file, std::stol(notes.at("note.heads")));
  AdamW optimizer(model);
  load_checkpoint(options.file, model, optimizer);
  const CharacterTokenizer tokenizer(notes.at("note.letters"));
  write(model, tokenizer.encode(options.prompt), options, {.max_tokens = options.max_tokens},
        [&](Index token) { return tokenizer.decode(std::vector{token}); });
}

void write_from_published(const Options& options) {
  const auto loaded = load_packed_model(options.file, options.products);
  if (!loaded.tokenizer) throw std::invalid_argument(options.file + ": no tokenizer.json");
  const auto& tokenizer = *loaded.tokenizer;
  write(loaded.language_model(), tokenizer.encode(options.prompt), options,
        {.max_tokens = options.max_tokens},
        [&](Index token) { return tokenizer.decode(std::vector{token}); });
}

void run(const Options& options) {
  if (options.file.ends_with(".gguf") || std::filesystem::is_directory(options.file)) {
    return write_from_published(options);
  }
  const Safetensors file = load_safetensors(options.file);
  const bool wide = file.entry("model.embedding.weight").type == ElementType::f64;
  wide ? write_from_checkpoint<double>(file, options) : write_from_checkpoint<float>(file, options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app("Writes on behind a prompt.");
  app.add_option("file", options.file,
                 "what train_char --save wrote, a model's folder, or a Llama's GGUF file")
      .required();
  app.add_option("--prompt", options.prompt, "default: a new line");
  app.add_option("--max-tokens", options.max_tokens).at_least(0);
  app.add_option("--temperature", options.temperature, "0: the likeliest token").at_least(0);
  app.add_option("--top-k", options.top_k, "0: all").at_least(0);
  app.add_option("--top-p", options.top_p).between(0., 1.);
  app.add_option("--seed", options.seed, "of what is drawn");
  example::add_products(app, options.products);
  example::add_threads(app);
  return app.run(argc, argv, [&] { run(options); });
}
