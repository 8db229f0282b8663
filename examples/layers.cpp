// SPDX-License-Identifier: MIT
// What docs/05-layers.md shows: layers as values, a layer of one's own, blocks and models.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <heed/layers.hpp>
#include <heed/models.hpp>
#include <heed/training.hpp>

#include "help.hpp"

using namespace heed;

namespace {

// [own]
/// y = x · weight, element by element along the last axis.
template <Scalar T>
struct Scale {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Input input;
  };

  Output forward(Input x) const {
    for (Index i = 0; i < x.size(); ++i) x.data()[i] *= weight[i % weight.size()];
    return x;
  }
  Output forward(const Input& x, Saved& saved) const {
    saved.input = x;
    return forward(x);
  }
  Input backward(const Output& grad, const Saved& saved, Scale& gradients) const {
    for (Index i = 0; i < grad.size(); ++i) {
      gradients.weight[i % weight.size()] += grad.data()[i] * saved.input.data()[i];
    }
    return forward(grad);
  }
  static auto members(auto& layer) { return Members{member("weight", layer.weight)}; }

  Tensor<T, 1> weight;
};
// [/own]

Tensor<float, 3> random_input(const Extents<3>& extents, Random& random) {
  Tensor<float, 3> x(extents);
  for (float& value : x) value = random.normal<float>();
  return x;
}

void linear() {
  // [linear]
  Random random(1);
  Linear<float> layer(4, 2, random);
  const auto x = random_input({2, 3, 4}, random);  // (batch, tokens, inputs), or any rank

  Linear<float>::Saved saved;
  const auto y = layer.forward(x, saved);  // layer.forward(x) stores nothing: inference
  auto gradients = zeros_like(layer);      // the gradient of a layer is a layer
  // y stands in for the gradient of a loss.
  const auto grad_x = layer.backward(y, saved, gradients);
  for_each_parameter(
      [](std::string_view name, const auto& parameter, const auto& gradient) {
        std::printf("%s has %td numbers and a gradient of as many: %d\n", std::string(name).c_str(),
                    parameter.size(), parameter.extents() == gradient.extents());
      },
      layer, gradients);
  // [/linear]
  std::printf("input gradient: %td numbers\n\n", grad_x.size());
}

void own_layer() {
  // [check]
  Random random(2);
  Scale<double> layer{{{3}, {0.5, -1, 2}}};
  Tensor<double, 3> x({1, 4, 3});
  for (double& value : x) value = random.normal();
  const auto report = gradient_check_layer(layer, x, random, {});
  std::printf("%td gradients right to 1e-9: %d\n\n", report.checked, report.worst < 1e-9);
  // [/check]
}

void block() {
  // [block]
  Random random(3);
  const SelfAttentionBlock<float> llama({.model_dim = 64,
                                         .heads = 8,
                                         .kv_heads = 2,
                                         .hidden_dim = 160,
                                         .activation = ActivationKind::silu,
                                         .gated = true,
                                         .norm = NormKind::rms,
                                         .bias = false,
                                         .positions = PositionKind::rotary},
                                        random);
  const auto x = random_input({1, 100, 64}, random);
  const auto whole = llama.forward(x, masks::Causal{});
  const auto beginning = Tensor<float, 3>::copy_of(x.slice(1, 0, 37));
  const auto part = llama.forward(beginning, masks::Causal{});
  const bool same =
      std::memcmp(part.data(), whole.data(), 37 * 64 * sizeof(float)) == 0;  // every bit
  std::printf("%td parameters; 37 of 100 tokens alone have the same bits: %d\n\n",
              parameter_count(llama), same);
  // [/block]
}

/// Whether the last token can tell in which order the others came.
bool hears_order(PositionKind kind) {
  LanguageModelOptions options;
  options.vocab_size = 10;
  options.max_length = 16;
  options.block = {.model_dim = 32, .heads = 4, .positions = kind};
  options.init_std = 0.3;
  Random random(5);
  LanguageModel<double> model(options, random);
  if (auto& table = model.blocks[0].attention.score_bias.relative) {
    for (double& value : *table) value = random.normal();  // it is learned, from 0
  }
  Tokens text({2, 4});
  for (Index i = 0; i < 4; ++i) text(0, i) = text(1, 2 - i < 0 ? i : 2 - i) = i + 1;
  const auto logits = model.forward(text, masks::Causal{});
  return std::fabs(logits(0, 3, 0) - logits(1, 3, 0)) > 1e-6;
}

void positions() {
  using enum PositionKind;
  const std::pair<const char*, PositionKind> kinds[] = {
      {"none", none},     {"learned", learned},   {"sinusoidal", sinusoidal},
      {"rotary", rotary}, {"relative", relative}, {"alibi", alibi}};
  for (const auto& [name, kind] : kinds) {
    std::printf("positions %-10s the last of 4 tokens hears the order of the others: %d\n", name,
                hears_order(kind));
  }
  std::printf("\n");
}

void model() {
  // [model]
  LanguageModelOptions options;
  options.vocab_size = 10;
  options.layers = 2;
  options.max_length = 16;
  options.block = {.model_dim = 32, .heads = 4};
  Random random(4);
  LanguageModel<float> model(options, random);
  AdamW optimizer(model, {.learning_rate = 3e-3});
  auto gradients = zeros_like(model);

  Tokens text({4, 16});  // rows that count up by 3, to be continued
  for (Index i = 0; i < text.size(); ++i) text.data()[i] = (i / 16 + 3 * (i % 16)) % 10;
  const auto input = Tokens::copy_of(text.slice(1, 0, 15));
  const auto target = Tokens::copy_of(text.slice(1, 1, 16));
  for (int step = 0; step < 60; ++step) {
    LanguageModel<float>::Saved saved;
    const auto logits = model.forward(input, masks::Causal{}, saved);
    const auto [loss, grad_logits] = cross_entropy(logits, target);
    set_zero(gradients);
    model.backward(grad_logits, saved, gradients);
    optimizer.step(model, gradients);
    if (step % 59 == 0) std::printf("step %d: loss %s 0.1\n", step, loss < 0.1 ? "below" : "above");
  }
  // [/model]
}

void padded_and_packed() {
  LanguageModelOptions options;  // positions are learned
  options.vocab_size = 10;
  options.layers = 2;
  options.max_length = 16;
  options.block = {.model_dim = 32, .heads = 4};
  options.init_std = 0.3;
  Random random(5);
  const LanguageModel<double> model(options, random);
  // [positions]
  const Tokens alone({1, 3}, {7, 2, 5});
  const Tokens left({1, 5}, {0, 0, 7, 2, 5});          // 0 is padding
  const Tokens packed({1, 7}, {9, 1, 4, 8, 7, 2, 5});  // after a document of 4 tokens
  const masks::Padding padding({2}, {5});
  const masks::Segments documents({0, 4, 7});
  const auto expected = model.forward(alone, masks::Causal{});
  const auto of_left =
      model.forward(left, masks::Causal{} & padding, positions_of(padding, left.extents()));
  const auto of_packed =
      model.forward(packed, masks::Causal{} & documents, positions_of(documents, packed.extents()));
  // [/positions]
  const auto by_columns = model.forward(left, masks::Causal{} & padding);
  const auto close = [&](const Tensor<double, 3>& logits) {
    double most = 0;
    for (Index i = 0; i < 3 * 10; ++i) {
      const double difference = logits.data()[logits.size() - 30 + i] - expected.data()[i];
      most = std::max(most, std::abs(difference));
    }
    return most < 1e-12;
  };
  std::printf("\nas alone: padded on the left %d, packed %d, by columns %d\n", close(of_left),
              close(of_packed), close(by_columns));
}

/// Layers that see a window alternate with layers that see all.
void local_and_global() {
  auto options = LanguageModelOptions::llama({.model_dim = 32, .heads = 4});
  options.vocab_size = 10;
  options.layers = 4;
  Random random(6);
  LanguageModel<float> model(options, random);
  // [windows]
  for (std::size_t i = 0; i < model.blocks.size(); i += 2) {
    model.blocks[i].attention.options.window = 4;
  }
  // [/windows]
  Tokens text({1, 12});
  for (Index i = 0; i < 12; ++i) text(0, i) = i % 10;
  const auto weights = attention_of(model, text, masks::Causal{});
  std::printf("\nkeys that the last of 12 tokens sees, layer by layer:");
  for (Index layer = 0; layer < 4; ++layer) {
    int seen = 0;
    for (const float weight : weights[layer][0][0][11]) seen += weight > 0 ? 1 : 0;
    std::printf(" %d", seen);
  }
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(count, arguments,
                      "Layers as values, a layer of one's own, blocks and models.", status))
    return status;
  linear();
  own_layer();
  block();
  positions();
  model();
  padded_and_packed();
  local_and_global();
}
