// SPDX-License-Identifier: MIT
// Writing with a language model: sessions with caches, batches, samplers, beams. Its weights are
// random; examples/chat does the same with real ones.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <heed/generation.hpp>
#include <heed/models.hpp>

#include "help.hpp"

namespace {

using namespace heed;

LanguageModel<float> small_model() {
  auto options = LanguageModelOptions::llama({.model_dim = 32, .heads = 4, .kv_heads = 2});
  options.vocab_size = 50;
  options.layers = 2;
  options.max_length = 64;
  options.init_std = 0.3;
  Random random(7);
  return {options, random};
}

void print(const char* name, const std::vector<Index>& tokens) {
  std::printf("%s:", name);
  for (const Index token : tokens) std::printf(" %td", token);
  std::printf("\n");
}

void write_one(const LanguageModel<float>& model) {
  const std::vector<Index> prompt = {3, 1, 4, 1, 5};
  // [generate]
  Session<float> session(model);  // holds the caches, refers to the model
  const Sampler sampler{samplers::Temperature{0.8}, samplers::TopK{.k = 10}, samplers::TopP{0.9}};
  Random random(1);  // the same tokens on every machine and with any number of threads
  const auto written = generate(session, prompt, sampler, {.max_tokens = 8}, random);
  // [/generate]
  print("sampled", written.tokens);
}

void write_some(const LanguageModel<float>& model) {
  // [batch]
  Session<float> session(model, {.batch = 2, .page_size = 16});
  const std::vector<std::vector<Index>> prompts = {{3, 1, 4, 1, 5}, {9, 2}};
  auto logits = session.prefill(prompts);  // (2, vocabulary): for the next token of each
  for (int i = 0; i < 4; ++i) {
    std::vector<Index> next;
    for (Index item = 0; item < 2; ++item) {
      const float* row = logits.data() + item * logits.extent(1);
      next.push_back(std::max_element(row, row + logits.extent(1)) - row);
    }
    print("likeliest", next);
    logits = session.step(next);
  }
  // [/batch]
}

void search(const LanguageModel<float>& model) {
  // [beams]
  Session<float> session(model, {.batch = 4, .page_size = 16});  // beams share their pages
  const std::vector<Index> prompt = {3, 1, 4, 1, 5};
  const auto beams = beam_search(session, prompt, {.width = 4, .max_tokens = 6, .results = 2});
  // [/beams]
  for (const auto& beam : beams) print("beam", beam.tokens);
}

}  // namespace

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(count, arguments,
                      "Writing with a model: sessions, batches, beams. The model is random, its "
                      "tokens are numbers.",
                      status))
    return status;
  const auto model = small_model();
  write_one(model);
  write_some(model);
  search(model);
}
