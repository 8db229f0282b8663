// SPDX-License-Identifier: MIT
// Talks with SmolLM2-135M-Instruct, or another Llama in a GGUF file with the same template.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
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
  example::ShownHead attention;
  std::string model, prompt;
  std::string system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
  Index max_tokens = 256, max_length = 2048;
  double temperature = 0, top_p = 0.9, repetition = 1;
  std::uint64_t seed = 1;
  Products products = Products::exact;
  bool quick = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The tokens of a turn in the template of ChatML. What is said is plain text, even where it spells
/// the name of a special token.
class Template {
 public:
  explicit Template(const BytePairEncoding& tokenizer)
      : tokenizer_(tokenizer), start_(special("<|im_start|>")), end_(special("<|im_end|>")) {}

  Index end() const { return end_; }
  void say(std::vector<Index>& tokens, const std::string& who, const std::string& text) const {
    open(tokens, who + "\n" + text);
    close(tokens);
  }
  void open(std::vector<Index>& tokens, const std::string& text) const {
    tokens.push_back(start_);
    for (const Index token : tokenizer_.encode(text)) tokens.push_back(token);
  }
  void close(std::vector<Index>& tokens) const {
    tokens.push_back(end_);
    for (const Index token : tokenizer_.encode("\n")) tokens.push_back(token);
  }

 private:
  Index special(const char* name) const {
    const auto tokens = tokenizer_.encode(name, SpecialTokens::recognized);
    if (tokens.size() != 1) throw std::invalid_argument(std::string("the model has no ") + name);
    return tokens[0];
  }
  const BytePairEncoding& tokenizer_;
  Index start_, end_;
};

Sampler sampler_of(const Options& options) {
  std::vector<SamplingStep> steps;
  if (options.repetition != 1) steps.push_back(samplers::RepetitionPenalty{options.repetition});
  if (options.temperature == 0) {
    steps.push_back(samplers::Greedy{});
  } else {
    steps.push_back(samplers::Temperature{options.temperature});
    steps.push_back(samplers::TopP{options.top_p});
  }
  return Sampler(steps);
}

class Chat {
 public:
  explicit Chat(const Options& options)
      : options_(options),
        file_(Gguf::open(example::model_path(options.model, "smollm2.gguf"))),
        tokenizer_(load_tokenizer(file_)),
        template_(tokenizer_),
        model_(model_of(file_, options)),
        session_(model_, {.max_length = options_.max_length,
                          .slide = std::max<Index>(1, options_.max_length / 2)}),
        random_(options.seed) {
    if (!options.system.empty()) template_.say(unread_, "system", options.system);
  }

  void turn(const std::string& text) {
    template_.say(unread_, "user", text);
    template_.open(unread_, "assistant\n");
    if (options_.attention.wanted()) show_attention();
    answer();
  }

 private:
  static LanguageModel<float> model_of(const Gguf& file, const Options& options) {
    return load_packed_llama(file, options.products);
  }

  void show_attention() const {
    Tokens tokens({1, static_cast<Index>(unread_.size())});
    std::copy(unread_.begin(), unread_.end(), tokens.data());
    std::vector<std::string> labels;
    for (const Index token : unread_) labels.push_back(example::label_of(tokenizer_.text(token)));
    example::show_attention(model_, tokens, masks::Causal{}, options_.attention, labels);
  }

  void answer() {
    example::CharacterStream out;
    const auto start = std::chrono::steady_clock::now();
    double first = 0;
    // [answer]
    const auto written = generate(
        session_, unread_, sampler_of(options_),
        {.max_tokens = options_.quick ? 16 : options_.max_tokens, .tokens = {template_.end()}},
        random_, [&](Index token) {
          if (first == 0) first = seconds_since(start);
          out.feed(tokenizer_.text(token));
        });
    // [/answer]
    const double rest = seconds_since(start) - first;
    const auto count = static_cast<double>(written.tokens.size());
    std::fprintf(
        stderr,
        "\n[%zu tokens read, the first written after %.3f s; %.0f written, %.1f a second]\n",
        unread_.size(), first, count, count > 1 ? (count - 1) / rest : 0.);
    // A token that nobody's stop rule ended on has been written but not read.
    unread_.clear();
    if (written.reason != StopReason::token && !written.tokens.empty()) {
      unread_.push_back(written.tokens.back());
    }
    template_.close(unread_);
  }

  Options options_;
  Gguf file_;
  BytePairEncoding tokenizer_;
  Template template_;
  LanguageModel<float> model_;
  Session<float> session_;
  Random random_;
  std::vector<Index> unread_;
};

void run(const Options& options) {
  options.attention.check();
  Chat chat(options);
  if (!options.prompt.empty()) return chat.turn(options.prompt);
  std::fprintf(stderr, "Say something; an empty line ends it.\n");
  for (std::string line; std::getline(std::cin, line) && !line.empty();) chat.turn(line);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app("Talks with SmolLM2-135M-Instruct, token by token, from its GGUF file.");
  app.add_option("--model", options.model, "GGUF file; default: smollm2.gguf in $HEED_MODELS");
  app.add_option("--prompt", options.prompt, "say this and end; default: lines of the input");
  app.add_option("--system", options.system, "what the model is told first");
  app.add_option("--max-tokens", options.max_tokens, "of an answer").at_least(0);
  app.add_option("--max-length", options.max_length,
                 "tokens of the talk that are looked back on; when full, the older half leaves")
      .at_least(1);
  app.add_option("--temperature", options.temperature, "0: the likeliest token").at_least(0);
  app.add_option("--top-p", options.top_p, "where the temperature is not 0").between(0., 1.);
  app.add_option("--repetition", options.repetition, "penalty for tokens that came before; 1: none")
      .above(0);
  options.attention.add_options(app, "tokens of the prompt");
  app.add_option("--seed", options.seed, "of what is drawn");
  example::add_threads(app);
  example::add_products(app, options.products);
  app.add_flag("--quick", options.quick, "short answers: 16 tokens");
  return app.run(argc, argv, [&] { run(options); });
}
