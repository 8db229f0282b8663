// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <heed/models/encoder.hpp>
#include <heed/pretrained/detail/unsupported.hpp>
#include <heed/pretrained/load_weights.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/pretrained/weight_file.hpp>
#include <heed/pretrained/weight_names.hpp>

namespace heed {

/// The options that a BERT's config.json describes. Throws FileError for what heed's BERT has not.
inline EncoderOptions bert_options(const ModelConfig& config) {
  config.expect_kind("bert");
  detail::refuse_unsupported(config);
  if (config.flag("is_decoder", false)) config.fail_at("is_decoder", "is true, expected false");
  const auto positions = config.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    config.fail_at("position_embedding_type", "is ", quote(positions), ", expected absolute");
  }
  EncoderOptions options;
  options.vocab_size = config.integer("vocab_size");
  options.model_dim = config.integer("hidden_size");
  options.heads = config.integer("num_attention_heads");
  options.layers = config.integer("num_hidden_layers");
  options.hidden_dim = config.integer("intermediate_size");
  options.max_length = config.integer("max_position_embeddings");
  options.segments = config.integer("type_vocab_size", 2);
  options.activation = config.activation("hidden_act", "gelu");
  options.norm_epsilon = config.real("layer_norm_eps", 1e-12);
  return detail::checked_options(options, config.name());
}

/// A BERT from a folder with config.json and model.safetensors, as Hugging Face publishes them
/// (Devlin et al. 2018). Throws FileError.
template <Scalar T>
Encoder<T> load_bert(const std::string& folder) {
  const auto options = bert_options(ModelConfig::read(folder + "/config.json"));
  const WeightFile file(load_safetensors(folder + "/model.safetensors"));
  return load_weights<Encoder<T>>(file, bert_names, options);
}

}  // namespace heed
