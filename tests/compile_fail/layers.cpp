// SPDX-License-Identifier: MIT
#include <heed/generation.hpp>
#include <heed/layers.hpp>
#include <heed/models.hpp>
#include <heed/training.hpp>

using namespace heed;

#ifdef TRAINING_BY_A_NUMBER  // returns a heed::BatchLoss
void misuse(Linear<float>& layer, AdamW<Linear<float>>& optimizer) {
  train(layer, optimizer, {.steps = 1}, [](Index, Linear<float>&) { return 1.0; });
}
#endif

// With the call that does not fit behind the sentence.
#if defined(OPTIMIZER_WITHOUT_OPTIONS)
struct Halving {
  void step(Linear<float>& layer, const Linear<float>&) { set_zero(layer); }
};
void misuse(Linear<float>& layer, Halving& optimizer) {
  train(layer, optimizer, {.steps = 1},
        [](Index, Linear<float>&) { return BatchLoss{.loss = 1, .tokens = 1}; });
}
#endif

#ifdef PRODUCTS_OF_A_CONST_MODEL  // set_products changes the model, which is const here
void misuse(const Linear<float>& layer) { set_products(layer, Products::bfloat16); }
#endif

struct Scale {
  Tensor<float, 1> gain;
  auto members() { return Members{member("gain", gain)}; }
};
struct Narrow {
  Tensor<bfloat16, 1> gain;
  static auto members(auto& model) { return Members{member("gain", model.gain)}; }
};
// With a second error, see CMakeLists.txt.
#if defined(MODEL_WITHOUT_STATIC_MEMBERS)
void misuse(const Scale& model) { Adam optimizer(model); }
#endif
#if defined(DECAYED_MODEL_WITHOUT_STATIC_MEMBERS)
void misuse(const Scale& model) { AdamW optimizer(model, {.weight_decay = 0.1}); }
#endif

#if defined(OPTIMIZER_OF_A_SCALAR)
void misuse(const Linear<float>& model) { AdamW<float> optimizer(model); }
#endif

#ifdef LAYER_WITHOUT_A_RANDOM  // layers and models draw their weights from a heed::Random
Linear<float> layer(4, 2);
#endif
#ifdef DROPOUT_WITHOUT_A_RANDOM  // from a heed::Random, and Dropout its numbers
Dropout<float> layer(0.1);
#endif
#ifdef PARAMETERS_OF_A_MODEL_FIRST  // the function comes first: for_each_parameter(
void misuse(Linear<float>& model) {
  for_each_parameter(model, [](std::string_view, auto& parameter) { parameter.fill(0); });
}
#endif
#ifdef BLOCK_WITHOUT_A_RANDOM  // layers and models draw their weights from a heed::Random
SelfAttentionBlock<float> block({.model_dim = 8, .heads = 2});
#endif
#ifdef MODEL_WITHOUT_A_RANDOM  // layers and models draw their weights from a heed::Random
auto misuse(const LanguageModelOptions& options) { return LanguageModel<float>(options); }
#endif

#ifdef LAYER_OF_A_MATRIX  // attention layers and blocks take a Tensor of (batch, tokens, dim)
void misuse(const MultiHeadAttention<float>& layer, const Tensor<float, 2>& x) {
  layer.forward(x, masks::Causal{});
}
#endif
#ifdef LAYER_UNDER_A_TENSOR  // a tensor is no mask by itself: wrap it, heed::masks::Dense(tensor)
void misuse(const MultiHeadAttention<float>& layer, const Tensor<float, 3>& x,
            const Tensor<bool, 2>& mask) {
  layer.forward(x, mask);
}
#endif
#ifdef WEIGHTS_WITHOUT_A_MASK  // a tensor is no mask by itself
void misuse(const MultiHeadAttention<float>& layer, const Tensor<float, 3>& x,
            Tensor<float, 4>& weights) {
  layer.forward(x, x, x, weights);
}
#endif
#ifdef ATTENTION_LAYER_OF_DOUBLES  // the tensor is of another scalar type than the layer
void misuse(const MultiHeadAttention<float>& layer, const Tensor<double, 3>& x) {
  auto y = layer.forward(x, masks::Causal{});
}
#endif
#ifdef ATTENTION_LAYER_OF_FLOATS  // Tensor<double, 3>(x) converts one to double
void misuse(const MultiHeadAttention<double>& layer, const Tensor<float, 3>& x) {
  auto y = layer.forward(x, masks::Causal{});
}
#endif
#ifdef MASK_BEFORE_TOKENS  // the tokens come before the mask: layer.forward(x, mask)
void misuse(const MultiHeadAttention<float>& layer, const Tensor<float, 3>& x) {
  auto y = layer.forward(masks::Causal{}, x);
}
#endif
#ifdef LAMBDA_BEFORE_TOKENS  // the tokens come before the mask: layer.forward(x, mask)
void misuse(const SelfAttentionBlock<float>& block, const Tensor<float, 3>& x) {
  auto y = block.forward([](Index query, Index key) { return key < query; }, x);
}
#endif
#ifdef BLOCK_OF_A_VIEW  // attention layers and blocks take a Tensor of (batch, tokens, dim)
void misuse(const SelfAttentionBlock<float>& block, const Tensor<float, 3>& x) {
  block.forward(x.view());
}
#endif
#ifdef SAVED_BEFORE_MASK  // what forward saves comes last: layer.forward(x, mask, saved)
void misuse(const SelfAttentionBlock<float>& block, const Tensor<float, 3>& x,
            SelfAttentionBlock<float>::Saved& saved) {
  auto y = block.forward(x, saved, masks::Causal{});
}
#endif
#ifdef SAVED_BEFORE_THE_MASK_OF_A_LAYER  // what forward saves comes last: layer.forward(x, mask,
void misuse(const MultiHeadAttention<float>& layer, const Tensor<float, 3>& x,
            MultiHeadAttention<float>::Saved& saved) {
  auto y = layer.forward(x, saved, masks::Causal{});
}
#endif
#ifdef BLOCK_UNDER_A_NAME  // this is no mask: a mask is a lambda
void misuse(const SelfAttentionBlock<float>& block, const Tensor<float, 3>& x) {
  auto y = block.forward(x, "causal");
}
#endif
#ifdef BLOCK_UNDER_A_TENSOR  // a tensor of bool is no mask by itself: wrap it
void misuse(const SelfAttentionBlock<float>& block, const Tensor<float, 3>& x,
            const Tensor<bool, 2>& mask) {
  auto y = block.forward(x, mask);
}
#endif
#ifdef SAVED_BEFORE_GRADIENT  // the gradient of the output comes first, and then what forward saved
void misuse(const Linear<float>& layer, const Linear<float>::Saved& saved,
            const Tensor<float, 3>& grad, Linear<float>& gradients) {
  auto grad_x = layer.backward(saved, grad, gradients);
}
#endif
#ifdef SAVED_BEFORE_THE_GRADIENT_OF_A_BLOCK  // layer.backward(grad, saved, gradients)
void misuse(const SelfAttentionBlock<float>& block, const SelfAttentionBlock<float>::Saved& saved,
            const Tensor<float, 3>& grad, SelfAttentionBlock<float>& gradients) {
  auto grad_x = block.backward(saved, grad, gradients);
}
#endif
#ifdef SAVED_ALONE_FOR_A_MODEL  // layer.backward(grad, saved, gradients)
void misuse(const LanguageModel<float>& model, const LanguageModel<float>::Saved& saved) {
  model.backward(saved);
}
#endif
#ifdef MODEL_OF_A_LIST  // models and Embedding take Tokens, (batch, tokens)
void misuse(const LanguageModel<float>& model, const std::vector<Index>& text) {
  model.forward(text);
}
#endif
#ifdef EMBEDDING_OF_A_LIST  // models and Embedding take Tokens, (batch, tokens)
void misuse(const Embedding<float>& layer, const std::vector<int>& text) { layer.forward(text); }
#endif
#ifdef SESSION_OF_ANOTHER_TYPE  // a session has the scalar type of its model
void misuse(const LanguageModel<double>& model) { Session<float> session(model); }
#endif
#ifdef BEAMS_OF_A_MODEL  // beam_search takes a session of the model: Session<float> session(model
void misuse(const LanguageModel<float>& model) { beam_search(model, {1, 2}, {.width = 3}); }
#endif
#ifdef SAMPLER_WITHOUT_A_RANDOM  // a sampler draws from a heed::Random: generate(session, prompt
void misuse(Session<float>& session) { generate(session, {1, 2}, samplers::TopK{}); }
#endif
#ifdef RULES_WITHOUT_A_RANDOM  // a sampler draws from a heed::Random: generate(session, prompt
void misuse(Session<float>& session, const StopRules& rules) {
  generate(session, {1, 2}, samplers::TopP{.p = 0.9}, rules);
}
#endif
#ifdef RULES_IN_BRACES_WITHOUT_A_RANDOM  // a sampler draws from a heed::Random: generate(session,
void misuse(Session<float>& session) {
  generate(session, {1, 2}, samplers::TopK{3}, {.max_tokens = 3});
}
#endif
#ifdef PROMPT_IN_WORDS  // a text is no list of numbers: tokenizer.encode(text) gives its tokens
void misuse(Session<float>& session) { generate(session, "hello", {.max_tokens = 3}); }
#endif
#ifdef PROMPT_AS_A_STRING  // a text is no list of numbers: tokenizer.encode(text) gives its tokens
void misuse(Session<float>& session, const std::string& text) { beam_search(session, text); }
#endif
#ifdef FLOAT_TARGETS  // targets are whole numbers, the class of each position
void misuse(const Tensor<float, 2>& logits, const Tensor<float, 1>& targets) {
  const auto [loss, gradient] = cross_entropy(logits, targets);
}
#endif
#ifdef TARGETS_WITH_CLASSES  // they have the axes of the logits but for the last one
void misuse(const Tensor<float, 2>& logits, const Tensor<Index, 2>& targets) {
  const double loss = cross_entropy_loss(logits, targets);
}
#endif
#ifdef TARGETS_BEFORE_LOGITS  // the logits come first: cross_entropy(logits, targets)
void misuse(const Tensor<float, 2>& logits, const Tensor<Index, 1>& targets) {
  const auto [loss, gradient] = cross_entropy(targets, logits);
}
#endif
#ifdef TARGETS_BEFORE_LOGITS_FOR_A_LOSS  // the logits come first: cross_entropy_loss(logits,
double misuse(const Tensor<float, 3>& logits, const std::vector<int>& targets) {
  return cross_entropy_loss(targets, logits);
}
#endif
#ifdef STEP_WITHOUT_GRADIENTS  // optimizer.step(model, gradients)
void misuse(AdamW<Linear<float>>& optimizer, Linear<float>& model) { optimizer.step(model); }
#endif
#ifdef STEP_OF_OPTIONS  // optimizer.step(model, gradients)
void misuse(Sgd<Linear<float>>& optimizer, Linear<float>& model) {
  optimizer.step(model, {.max_gradient_norm = 1});
}
#endif
#ifdef STEP_OF_A_CONST_MODEL  // a step changes the model, which is const here
void misuse(AdamW<Linear<float>>& optimizer, const Linear<float>& model, Linear<float>& gradients) {
  optimizer.step(model, gradients);
}
#endif
#ifdef GRADIENTS_OF_ANOTHER_TYPE  // the model and its gradients are of the type that the optimizer
void misuse(AdamW<Linear<float>>& optimizer, Linear<float>& model,
            const Linear<double>& gradients) {
  optimizer.step(model, gradients, {.learning_rate = 1});
}
#endif
#ifdef STEP_OF_ANOTHER_MODEL  // the model and its gradients are of the type that the optimizer
void misuse(Sgd<Linear<float>>& optimizer, Embedding<float>& model, const Linear<float>& to) {
  optimizer.step(model, to);
}
#endif
// With what the type lacks behind the sentence.
#if defined(MODEL_IN_BFLOAT16)
void misuse(const LanguageModel<bfloat16>& model, const Tokens& x) { model.forward(x); }
#endif
#if defined(MODEL_OF_INTS)
void misuse(Linear<int>& layer) { layer.pack(); }
#endif
#if defined(GENERATED_BY_A_MODEL)
void misuse(const LanguageModel<float>& model) { generate(model, {1, 2}); }
#endif
#ifdef WIDTH_OF_POSITIONS  // positions have the width of what they are added to
SinusoidalPositions<float> misuse(512);
#endif
#ifdef LISTENER_THAT_ANSWERS_A_NUMBER  // a listener answers nothing, or a bool: false ends the loop
void misuse(Session<float>& session) {
  generate(session, {1, 2}, {}, [](Index t) { return t; });
}
#endif
#if defined(SESSION_IN_BFLOAT16)
void misuse(Session<bfloat16>& session) { session.clear(); }
#endif
#if defined(PARAMETERS_IN_BFLOAT16)
void misuse(Narrow& gradients) { clip_gradient_norm(gradients, 1); }
#endif
#if defined(LOSS_IN_BFLOAT16)
void misuse(const Tensor<bfloat16, 3>& x, const Tokens& to) { cross_entropy(x, to); }
#endif
#if defined(LOSS_ALONE_IN_BFLOAT16)
void misuse(const Tensor<bfloat16, 3>& x, const Tokens& to) { cross_entropy_loss(x, to); }
#endif

Narrow correct(const Narrow& model) { return zeros_like(model); }
void correct(Linear<float>& layer) { set_products(layer, Products::bfloat16); }
