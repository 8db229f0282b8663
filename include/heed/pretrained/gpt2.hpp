// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <heed/models/language_model.hpp>
#include <heed/pretrained/detail/unsupported.hpp>
#include <heed/pretrained/load_weights.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/pretrained/weight_file.hpp>
#include <heed/pretrained/weight_names.hpp>

namespace heed {

/// The options that a GPT-2's config.json describes. Throws FileError for what heed's GPT-2 has
/// not.
inline LanguageModelOptions gpt2_options(const ModelConfig& config) {
  config.expect_kind("gpt2");
  detail::refuse_unsupported(config);
  for (const char* key : {"scale_attn_weights", "tie_word_embeddings"}) {
    if (!config.flag(key, true)) config.fail_at(key, "is false, expected true");
  }
  if (config.flag("scale_attn_by_inverse_layer_idx", false)) {
    config.fail_at("scale_attn_by_inverse_layer_idx", "is true, expected false");
  }
  LanguageModelOptions options;
  options.vocab_size = config.integer("vocab_size");
  options.model_dim = config.integer("n_embd");
  options.heads = config.integer("n_head");
  options.layers = config.integer("n_layer");
  options.hidden_dim = config.integer("n_inner", 4 * options.model_dim);
  options.max_length = config.integer("n_positions");
  options.activation = config.activation("activation_function", "gelu_new");
  options.norm_epsilon = config.real("layer_norm_epsilon", 1e-5);
  options.fused_projection = true;
  return detail::checked_options(options, config.name());
}

/// A GPT-2 from a folder with config.json and model.safetensors, as Hugging Face publishes them
/// (Radford et al. 2019). Throws FileError.
template <Scalar T>
LanguageModel<T> load_gpt2(const std::string& folder) {
  const auto options = gpt2_options(ModelConfig::read(folder + "/config.json"));
  const WeightFile file(load_safetensors(folder + "/model.safetensors"));
  return load_weights<LanguageModel<T>>(file, gpt2_names, options);
}

}  // namespace heed
