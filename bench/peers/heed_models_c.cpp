// SPDX-License-Identifier: MIT
// A C face of whole models for peers/generation.py. Built as libheed_bench_models.so.
#include <algorithm>
#include <span>
#include <vector>

#include <heed/heed.hpp>
#include <heed/pretrained.hpp>

namespace {

using namespace heed;

struct Writer {
  LanguageModel<float> model;
  Session<float> session;
  explicit Writer(LanguageModel<float> given) : model(std::move(given)), session(model) {}
};

constexpr Products kinds[] = {Products::exact, Products::int16, Products::bfloat16};

LanguageModel<float> from_file(const char* path, Products products) {
  if (products != Products::bfloat16) return load_packed_llama(Gguf::open(path), products);
  auto model = load_llama<float>(Gguf::open(path));  // its quantized weights, rounded
  set_products(model, products);
  model.pack();
  return model;
}

LanguageModel<float> random_gpt2(Index vocabulary, Index dim, Index heads, Index blocks,
                                 Index length) {
  Random random(1);
  LanguageModel<float> model({.vocab_size = vocabulary,
                              .layers = blocks,
                              .max_length = length,
                              .block = {.model_dim = dim, .heads = heads}},
                             random);
  model.pack();
  return model;
}

}  // namespace

extern "C" {

void heed_threads(int count) { set_thread_count(count); }
const char* heed_isa() { return simd::name(simd::active()).data(); }

/// A Llama from a GGUF file, its weights as stored (`kind` 0), with rounded products (1) or in
/// bfloat16 (2); heed_close gives it back.
Writer* heed_open(const char* path, int kind) { return new Writer(from_file(path, kinds[kind])); }
/// A GPT-2 of random weights.
Writer* heed_random_gpt2(Index vocabulary, Index dim, Index heads, Index blocks, Index length) {
  return new Writer(random_gpt2(vocabulary, dim, heads, blocks, length));
}
void heed_close(const Writer* writer) { delete writer; }

/// Begins anew and reads `count` tokens; gives the likeliest next one.
Index heed_prefill(Writer* writer, const Index* tokens, Index count) {
  writer->session.clear();
  const auto logits = writer->session(std::span(tokens, static_cast<std::size_t>(count)));
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}
/// Writes `count` tokens behind `token`, each the likeliest, into `written`.
void heed_decode(Writer* writer, Index token, Index count, Index* written) {
  for (Index i = 0; i < count; ++i) {
    const auto logits = writer->session(std::span(&token, 1));
    token = std::max_element(logits.begin(), logits.end()) - logits.begin();
    written[i] = token;
  }
}

SentenceEncoder<float>* heed_open_encoder(const char* folder, int kind) {
  return new SentenceEncoder<float>(SentenceEncoder<float>::read(folder, kinds[kind]));
}
/// Vectors of (batch, width) tokens of which `lengths` are no padding, (batch, 384) into `out`.
void heed_embed(const SentenceEncoder<float>* encoder, const Index* tokens, const Index* lengths,
                Index batch, Index width, float* out) {
  SentenceBatch sentences{Tokens({batch, width}), {lengths, lengths + batch}};
  std::copy_n(tokens, batch * width, sentences.tokens.data());
  const auto vectors = encoder->embed(sentences);
  std::copy_n(vectors.data(), vectors.size(), out);
}
}
