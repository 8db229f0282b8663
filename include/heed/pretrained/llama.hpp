// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <heed/io/gguf.hpp>
#include <heed/models/language_model.hpp>
#include <heed/pretrained/detail/unsupported.hpp>
#include <heed/pretrained/load_weights.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/pretrained/weight_file.hpp>
#include <heed/pretrained/weight_names.hpp>

namespace heed {

namespace detail {

/// Throws FileError for what a config.json says of a Llama's attention and heed's has not.
inline void check_llama_attention(const ModelConfig& config) {
  for (const char* key : {"rope_parameters.rope_type", "rope_parameters.type",
                          "rope_scaling.rope_type", "rope_scaling.type"}) {
    const auto rotary = config.text(key, "default");
    if (rotary != "default") config.fail_at(key, "is ", quote(rotary), ", expected default");
  }
  if (!config.flag("use_sliding_window", true) || !config.has("sliding_window")) return;
  const double window = config.real("sliding_window");
  if (!(window >= config.real("max_position_embeddings"))) {
    config.fail_at("sliding_window", "is ", window, ", expected max_position_embeddings or more");
  }
}

}  // namespace detail

/// The options that a Llama's config.json describes. Throws FileError for what heed's Llama has
/// not.
inline LanguageModelOptions llama_options(const ModelConfig& config) {
  config.expect_kind("llama");
  detail::refuse_unsupported(config);
  detail::check_llama_attention(config);
  auto options = LanguageModelOptions::llama();
  options.vocab_size = config.integer("vocab_size");
  options.model_dim = config.integer("hidden_size");
  options.heads = config.integer("num_attention_heads");
  options.kv_heads = config.integer("num_key_value_heads", options.heads);
  options.head_dim = config.integer("head_dim", 0);
  options.layers = config.integer("num_hidden_layers");
  options.hidden_dim = config.integer("intermediate_size");
  options.max_length = config.integer("max_position_embeddings");
  options.activation = config.activation("hidden_act", "silu");
  options.norm_epsilon = config.real("rms_norm_eps", 1e-6);
  options.rotary.base = config.real("rope_parameters.rope_theta", config.real("rope_theta", 10000));
  options.tied_head = config.flag("tie_word_embeddings", false);
  return detail::checked_options(options, config.name());
}

/// The options that the metadata of a GGUF file with a Llama describe. Queries and keys are stored
/// for interleaved pairs. Throws FileError for what heed's Llama has not.
inline LanguageModelOptions llama_options(const Gguf& file) {
  const auto expect = [&](const char* key, std::string_view expected) {
    const auto value = file.value<std::string_view>(key, expected);
    if (value == expected) return;
    file.fail_at(file.field(key), "is ", quote(value), ", expected ", expected);
  };
  static_cast<void>(file.field("general.architecture"));
  expect("general.architecture", "llama");
  expect("llama.rope.scaling.type", "none");
  detail::refuse_unsupported_llama(file);
  const auto integer = [&](const char* key) {
    return static_cast<Index>(file.value<std::uint32_t>(key));
  };
  auto options = LanguageModelOptions::llama();
  const auto table = file.entry("token_embd.weight").shape();
  options.vocab_size = table.empty() ? 0 : table[0];
  if (file.value<Index>("llama.vocab_size", options.vocab_size) != options.vocab_size) {
    file.fail_at(file.field("llama.vocab_size"), "is not ", options.vocab_size,
                 ", the rows of 'token_embd.weight'");
  }
  options.model_dim = integer("llama.embedding_length");
  options.heads = integer("llama.attention.head_count");
  options.kv_heads = static_cast<Index>(file.value<std::uint32_t>(
      "llama.attention.head_count_kv", static_cast<std::uint32_t>(options.heads)));
  options.head_dim = static_cast<Index>(file.value<std::uint32_t>("llama.attention.key_length", 0));
  options.layers = integer("llama.block_count");
  options.hidden_dim = integer("llama.feed_forward_length");
  options.max_length = integer("llama.context_length");
  options.norm_epsilon =
      static_cast<double>(file.value<float>("llama.attention.layer_norm_rms_epsilon"));
  options.rotary.base = static_cast<double>(file.value<float>("llama.rope.freq_base", 10000));
  options.rotary.dims =
      static_cast<Index>(file.value<std::uint32_t>("llama.rope.dimension_count", 0));
  options.rotary.pairing = RotaryPairing::interleaved;
  options.tied_head = !file.contains("output.weight");
  const Index head_dim = options.head_dim > 0 ? options.head_dim
                         : options.heads > 0  ? options.model_dim / options.heads
                                              : 0;
  detail::check_llama_attention(file, options.max_length, head_dim);
  return detail::checked_options(options, file.name());
}

/// A Llama from a folder with config.json and model.safetensors, as Hugging Face publishes them
/// (Touvron et al. 2023). Throws FileError.
template <Scalar T>
LanguageModel<T> load_llama(const std::string& folder) {
  const auto options = llama_options(ModelConfig::read(folder + "/config.json"));
  const WeightFile file(load_safetensors(folder + "/model.safetensors"));
  const auto& names = options.tied_head ? tied_llama_names : llama_names;
  return load_weights<LanguageModel<T>>(file, names, options);
}
/// The same from a GGUF file, its weights dequantized. Throws FileError.
template <Scalar T>
LanguageModel<T> load_llama(const Gguf& file) {
  return load_weights<LanguageModel<T>>(WeightFile(file), gguf_llama_names, llama_options(file));
}

namespace detail {

/// The transpose of a file's matrix, packed as it is stored where heed multiplies with that type;
/// else empty.
inline PackedMatrix<float> packed_as_stored(const Gguf& file, const std::string& name,
                                            QuantizedProducts products) {
  const GgufTensor& tensor = file.entry(name);
  if (tensor.rank != 2) return {};
  const Index columns = tensor.extents[0], rows = tensor.extents[1];
  const auto blocks = [&]<class Block>(Block) {
    return PackedMatrix<float>::transposed_blocks<Block>(file.bytes(name), rows, columns, products);
  };
  if (tensor.type->name == "Q4_1") return blocks(Q4_1{});
  if (tensor.type->name == "Q4_0") return blocks(Q4_0{});
  if (tensor.type->name == "Q8_0") return blocks(Q8_0{});
  return {};
}

}  // namespace detail

/// Packs a Llama for inference with the file's own weights: Q4_0, Q4_1 and Q8_0 stay as they
/// are stored and are dequantized where they are used, so that a token reads a sixth of the memory,
/// or a quarter; others are packed as floats. With exact products not one bit of a result changes;
/// rounded ones are about half as long at work and differ as matrix_product says. The file is the
/// one that the model was read from; throws InvalidArgument where it has another number of blocks.
inline void pack_as_stored(LanguageModel<float>& model, const Gguf& file,
                           QuantizedProducts products = QuantizedProducts::exact) {
  if (static_cast<Index>(model.blocks.size()) != llama_options(file).layers ||
      model.head.own.has_value() != file.contains("output.weight")) {
    throw_invalid_argument("pack_as_stored: the model was read from another file");
  }
  const WeightFile weights(file);
  const detail::WeightMatch names(weights, gguf_llama_names);
  const auto pack = [&](Linear<float>& layer, const std::string& name) {
    layer.packed = detail::packed_as_stored(file, names.name_of(name + ".weight").name, products);
    if (layer.packed.empty()) layer.pack();
  };
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    auto& block = model.blocks[i];
    const std::string attention = detail::message("blocks.", i, ".attention.");
    const std::string feed_forward = detail::message("blocks.", i, ".feed_forward.");
    pack(*block.attention.projections.query, attention + "query");
    pack(*block.attention.projections.key, attention + "key");
    pack(*block.attention.projections.value, attention + "value");
    pack(block.attention.out, attention + "out");
    pack(*block.feed_forward.gate, feed_forward + "gate");
    pack(block.feed_forward.up, feed_forward + "up");
    pack(block.feed_forward.down, feed_forward + "down");
  }
  if (model.head.own) return pack(*model.head.own, "head");
  model.head.packed =
      detail::packed_as_stored(file, names.name_of("embedding.weight").name, products);
  if (model.head.packed.empty()) model.head.pack(model.input.embedding);
}

}  // namespace heed
