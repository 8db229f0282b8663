// SPDX-License-Identifier: MIT
// Ranks sentences by how near they are to a question, with all-MiniLM-L6-v2.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/pretrained.hpp>
#include <heed/text.hpp>

#include "common.hpp"
#include "real_models.hpp"

namespace {

using namespace heed;

struct Options {
  example::ShownHead attention;
  std::string model;
  std::string query = "Which animal was sleepy?";
  std::vector<std::string> sentences;
  std::uint64_t seed = 1;
  bool quick = false;
};

const std::vector<std::string> some_sentences = {
    "The cat was tired, so it slept.",
    "Stock prices fell sharply on Monday.",
    "A dog lay dozing in the sun.",
    "Attention weighs every token against every other one.",
    "My train to Berlin leaves at noon.",
    "The kitten yawned and curled up on the sofa.",
    "Water boils at a lower temperature on a mountain.",
    "He fixed the bug by adding a missing semicolon.",
};

void show_attention(const Options& options, const SentenceEncoder<float>& encoder) {
  const std::vector<std::string> query = {options.query};
  const auto batch = encoder.tokens(query);
  std::vector<std::string> labels;
  for (const Index token : batch.tokens) labels.push_back(encoder.tokenizer().name(token));
  std::printf("\n");
  example::show_attention(encoder.model(), batch.tokens, masks::Padding(batch.lengths),
                          options.attention, labels);
}

void run(const Options& options) {
  options.attention.check();
  // [read]
  const auto encoder = SentenceEncoder<float>::read(example::model_path(options.model, "minilm"));
  // [/read]
  std::vector<std::string> sentences = options.sentences;
  if (sentences.empty()) sentences = some_sentences;
  if (options.quick) sentences.resize(std::min<std::size_t>(sentences.size(), 4));
  sentences.push_back(options.query);
  // [embed]
  const auto vectors = encoder.embed(sentences);  // (sentences, 384), each of length 1
  // [/embed]
  const Index query = vectors.extent(0) - 1;
  std::vector<double> nearness(static_cast<std::size_t>(query));
  for (Index row = 0; row < query; ++row) {
    for (Index d = 0; d < vectors.extent(1); ++d) {
      nearness[static_cast<std::size_t>(row)] +=
          static_cast<double>(vectors(row, d)) * static_cast<double>(vectors(query, d));
    }
  }
  std::vector<std::size_t> order(nearness.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return nearness[a] > nearness[b]; });
  std::printf("%s\n", options.query.c_str());
  for (const std::size_t i : order) std::printf("  %6.3f  %s\n", nearness[i], sentences[i].c_str());
  if (options.attention.wanted()) show_attention(options, encoder);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "Ranks sentences by how near they are to a question, with all-MiniLM-L6-v2.");
  app.add_option("--model", options.model,
                 "folder with config.json, model.safetensors, vocab.txt; default: minilm in "
                 "$HEED_MODELS");
  app.add_option("--query", options.query, "what the sentences are compared with");
  app.add_option("sentences", options.sentences, "default: eight of ours");
  options.attention.add_options(app, "word pieces of the query");
  app.add_option("--seed", options.seed, "taken for uniformity: nothing here is random");
  example::add_threads(app);
  app.add_flag("--quick", options.quick, "four sentences at most");
  return app.run(argc, argv, [&] { run(options); });
}
