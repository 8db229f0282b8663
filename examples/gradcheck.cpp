// SPDX-License-Identifier: MIT
// Every gradient of every model beside difference quotients, in double: the worst entry of each
// parameter, by name.
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <heed/layers.hpp>
#include <heed/models.hpp>
#include <heed/training.hpp>

#include "common.hpp"

namespace {

using namespace heed;

struct Options {
  std::uint64_t seed = 1;
  std::string model = "all";
  bool quick = false;
};

constexpr double allowed = 1e-9;  // of the norm of all gradients

Tokens random_tokens(Index batch, Index length, Index vocabulary, Random& random) {
  Tokens tokens({batch, length});
  for (Index& token : tokens) token = random.integer(vocabulary);
  return tokens;
}

/// A line for every parameter; whether all agree.
template <class Model>
bool print_check(const std::string& title, Model& model, const Model& gradients,
                 FunctionRef<double()> loss, const Options& options) {
  struct Line {
    GradientCheckReport report;
    Index size;
  };
  std::vector<Line> lines;
  double squares = 0;
  // [check]
  for (const CheckedGradient& tensor : detail::checked_gradients(model, gradients)) {
    const auto report = gradient_check(std::span<const CheckedGradient>(&tensor, 1), loss,
                                       {.most = options.quick ? 3 : 0});
    // [/check]
    squares += report.norm * report.norm;
    lines.push_back({report, static_cast<Index>(tensor.values.size())});
  }
  std::printf("%s, %td numbers\n", title.c_str(), parameter_count(model));
  bool good = true;
  for (const auto& [report, size] : lines) {
    const double error = std::fabs(report.claimed - report.measured) / std::sqrt(squares);
    const bool agrees = error <= allowed;
    good = good && agrees;
    std::printf("  %-48s %6td  ", report.name.c_str(), size);
    options.quick ? std::puts(agrees ? "below 1e-9" : "WRONG") : std::printf("%.4g\n", error);
  }
  std::printf("%s\n\n", good ? "  all agree" : "  SOME DO NOT AGREE");
  return good;
}

/// A language model of some options over a padded batch, dropout on.
bool check_language_model(const std::string& title, const LanguageModelOptions& shape,
                          const Options& options) {
  Random random(options.seed);
  LanguageModel<double> model(shape, random);
  const Tokens tokens = random_tokens(2, 5, shape.vocab_size, random);
  Tokens targets = random_tokens(2, 5, shape.vocab_size, random);
  const std::vector<Index> lengths = {5, 3};
  targets(1, 3) = targets(1, 4) = -100;
  const Mask mask = masks::Causal{} & masks::Padding(lengths);
  const Noise noise{.seed = 7};
  LanguageModel<double>::Saved saved;
  const auto logits = model.forward(tokens, mask, noise, saved);
  auto gradients = zeros_like(model);
  model.backward(cross_entropy(logits, targets, {.label_smoothing = 0.1}).grad_logits, saved,
                 gradients);
  const auto loss = [&] {
    LanguageModel<double>::Saved unused;
    return cross_entropy_loss(model.forward(tokens, mask, noise, unused), targets,
                              {.label_smoothing = 0.1});
  };
  return print_check(title, model, gradients, loss, options);
}

bool check_gpt(const Options& options) {
  return check_language_model("GPT: learned positions, layer norm, GELU, tied head",
                              {.vocab_size = 7,
                               .layers = 2,
                               .max_length = 6,
                               .init_std = 0.5,
                               .block = {.model_dim = 8, .heads = 2, .dropout = 0.2}},
                              options);
}

bool check_llama(const Options& options) {
  auto shape =
      LanguageModelOptions::llama({.model_dim = 8, .heads = 4, .kv_heads = 2, .hidden_dim = 12});
  shape.vocab_size = 7;
  shape.init_std = 0.5;
  return check_language_model("Llama: rotary positions, RMS norm, SwiGLU, shared key heads", shape,
                              options);
}

bool check_encoder(const Options& options) {
  Random random(options.seed);
  auto shape = EncoderOptions::bert({.model_dim = 8, .heads = 2, .dropout = 0.1});
  shape.vocab_size = 9;
  shape.layers = 2;
  shape.max_length = 6;
  shape.init_std = 0.5;
  Encoder<double> model(shape, random);
  const Tokens tokens = random_tokens(2, 5, 9, random);
  const Mask mask = masks::Padding(std::vector<Index>{5, 3});
  Tensor<double, 3> aim({2, 5, 8});
  for (double& value : aim) value = random.normal();
  const Noise noise{.seed = 7};
  Encoder<double>::Saved saved;
  const auto out = model.forward(tokens, mask, {}, noise, saved);
  auto gradients = zeros_like(model);
  model.backward(mean_squared_error(out, aim).grad_predictions, saved, gradients);
  const auto loss = [&] {
    Encoder<double>::Saved unused;
    return mean_squared_error(model.forward(tokens, mask, {}, noise, unused), aim).loss;
  };
  return print_check("Encoder: BERT's, norms after", model, gradients, loss, options);
}

bool check_encoder_decoder(const Options& options) {
  Random random(options.seed);
  const EncoderDecoderOptions shape{.source_vocab_size = 6,
                                    .target_vocab_size = 7,
                                    .block = {.model_dim = 8,
                                              .heads = 2,
                                              .activation = ActivationKind::silu,
                                              .positions = PositionKind::sinusoidal,
                                              .dropout = 0.1}};
  EncoderDecoder<double> model(shape, random);
  const Tokens source = random_tokens(2, 4, 6, random), target = random_tokens(2, 5, 7, random);
  const Tokens targets = random_tokens(2, 5, 7, random);
  const masks::Padding known(std::vector<Index>{4, 2});
  const EncoderDecoderMasks masks{known, masks::Causal{}, known};
  const Noise noise{.seed = 7};
  EncoderDecoder<double>::Saved saved;
  const auto logits = model.forward(source, target, masks, noise, saved);
  auto gradients = zeros_like(model);
  model.backward(cross_entropy(logits, targets).grad_logits, saved, gradients);
  const auto loss = [&] {
    EncoderDecoder<double>::Saved unused;
    return cross_entropy_loss(model.forward(source, target, masks, noise, unused), targets);
  };
  return print_check("Encoder-decoder: norms before, SiLU", model, gradients, loss, options);
}

bool run(const Options& options) {
  const auto wanted = [&](const char* name) {
    return options.model == "all" || options.model == name;
  };
  bool good = true;
  std::printf("|claimed - measured| over the norm of all gradients, worst of each parameter\n\n");
  if (wanted("gpt")) good = check_gpt(options) && good;
  if (wanted("llama")) good = check_llama(options) && good;
  if (wanted("encoder")) good = check_encoder(options) && good;
  if (wanted("translation")) good = check_encoder_decoder(options) && good;
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::CommandLine app(
      "Checks every gradient of the models with difference quotients, in double.");
  app.add_option("--model", options.model, "all, gpt, llama, encoder or translation")
      .one_of({"all", "gpt", "llama", "encoder", "translation"});
  app.add_option("--seed", options.seed, "of weights and data");
  example::add_threads(app);
  app.add_flag("--quick", options.quick, "three elements of each parameter, no figures");
  return app.run(argc, argv, [&] { return run(options) ? 0 : 1; });
}
