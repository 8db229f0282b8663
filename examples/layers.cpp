// SPDX-License-Identifier: MIT
// What docs/05-layers.md shows: layers as values, a layer of one's own, blocks and models.
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>

#include <heed/heed.hpp>

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
  static auto members(auto& layer) { return std::tuple{member("weight", layer.weight)}; }

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
  Linear<float> layer({.inputs = 4, .outputs = 2}, random);
  const auto x = random_input({2, 3, 4}, random);  // (batch, tokens, inputs)

  Linear<float>::Saved saved;
  const auto y = layer.forward(x, saved);  // layer.forward(x) keeps nothing: inference
  auto gradients = zeros_like(layer);      // the gradient of a layer is a layer
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
                                         .key_heads = 2,
                                         .hidden_dim = 160,
                                         .activation = ActivationKind::silu,
                                         .gated = true,
                                         .norm = NormKind::rms,
                                         .bias = false,
                                         .rotary = RotaryOptions{}},
                                        random);
  const auto x = random_input({1, 100, 64}, random);
  const auto whole = llama.forward(x, masks::Causal{});
  const auto beginning = Tensor<float, 3>::copy_of(x.view().slice(1, 0, 37));
  const auto part = llama.forward(beginning, masks::Causal{});
  const bool same =
      std::memcmp(part.data(), whole.data(), 37 * 64 * sizeof(float)) == 0;  // every bit
  std::printf("%td parameters; 37 of 100 tokens alone have the same bits: %d\n\n",
              parameter_count(llama), same);
  // [/block]
}

void model() {
  // [model]
  LanguageModelOptions options;
  options.vocabulary = 10;
  options.model_dim = 32;
  options.heads = 4;
  options.blocks = 2;
  options.max_length = 16;
  Random random(4);
  LanguageModel<float> model(options, random);
  AdamW optimizer(model, {.learning_rate = 3e-3});
  auto gradients = zeros_like(model);

  Tokens text({4, 16});  // rows that count up by 3; the task is to go on
  for (Index i = 0; i < text.size(); ++i) text.data()[i] = (i / 16 + 3 * (i % 16)) % 10;
  const auto input = Tokens::copy_of(text.view().slice(1, 0, 15));
  const auto target = Tokens::copy_of(text.view().slice(1, 1, 16));
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

}  // namespace

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(count, arguments,
                      "Layers as values, a layer of one's own, blocks and models.", status))
    return status;
  linear();
  own_layer();
  block();
  model();
}
