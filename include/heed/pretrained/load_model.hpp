// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <variant>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/core/text.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/language_model.hpp>
#include <heed/pretrained/load_weights.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/text/byte_pair_encoding.hpp>
#include <heed/text/load_tokenizer.hpp>
#include <heed/text/vocabulary.hpp>
#include <heed/text/word_piece.hpp>

namespace heed {

/// The options in a BERT's config.json. Throws FileError for settings that heed does not support.
inline EncoderOptions bert_options(const ModelConfig& config) {
  config.expect_kind("bert");
  detail::refuse_unsupported(config);
  if (config.flag("is_decoder", false)) config.fail_at("is_decoder", "is true, expected false");
  const auto positions = config.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    config.fail_at("position_embedding_type", "is ", quote(positions), ", expected absolute");
  }
  auto options = EncoderOptions::bert();
  BlockOptions& block = options.block;
  options.vocab_size = config.integer("vocab_size");
  block.model_dim = config.integer("hidden_size");
  block.heads = config.integer("num_attention_heads");
  options.layers = config.integer("num_hidden_layers");
  block.hidden_dim = config.integer("intermediate_size");
  options.max_length = config.integer("max_position_embeddings");
  options.segments = config.integer("type_vocab_size", 2);
  block.activation = config.activation("hidden_act", "gelu");
  block.norm_epsilon = config.real("layer_norm_eps", 1e-12);
  return detail::checked_options(options, config.name());
}

/// Loads a BERT from a folder with config.json and model.safetensors, as Hugging Face publishes it
/// (Devlin et al. 2018). Throws FileError.
template <Scalar T>
Encoder<T> load_bert(const std::string& folder) {
  const auto options = bert_options(ModelConfig::read(folder + "/config.json"));
  const WeightFile file(load_safetensors(folder + "/model.safetensors"));
  return load_weights<Encoder<T>>(file, bert_names, options);
}

/// The options in a GPT-2's config.json. Throws FileError for settings that heed does not support.
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
  BlockOptions& block = options.block;
  options.vocab_size = config.integer("vocab_size");
  block.model_dim = config.integer("n_embd");
  block.heads = config.integer("n_head");
  options.layers = config.integer("n_layer");
  block.hidden_dim = config.integer("n_inner", 4 * block.model_dim);
  options.max_length = config.integer("n_positions");
  block.activation = config.activation("activation_function", "gelu_new");
  block.norm_epsilon = config.real("layer_norm_epsilon", 1e-5);
  block.fused_projection = true;
  return detail::checked_options(options, config.name());
}

/// Loads a GPT-2 from a folder with config.json and model.safetensors, as Hugging Face publishes it
/// (Radford et al. 2019). Throws FileError.
template <Scalar T>
LanguageModel<T> load_gpt2(const std::string& folder) {
  const auto options = gpt2_options(ModelConfig::read(folder + "/config.json"));
  const WeightFile file(load_safetensors(folder + "/model.safetensors"));
  return load_weights<LanguageModel<T>>(file, gpt2_names, options);
}

namespace detail {

/// Throws FileError for attention settings in a Llama's config.json that heed does not support.
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

/// The options in a Llama's config.json. Throws FileError for settings that heed does not support.
inline LanguageModelOptions llama_options(const ModelConfig& config) {
  config.expect_kind("llama");
  detail::refuse_unsupported(config);
  detail::check_llama_attention(config);
  auto options = LanguageModelOptions::llama();
  BlockOptions& block = options.block;
  options.vocab_size = config.integer("vocab_size");
  block.model_dim = config.integer("hidden_size");
  block.heads = config.integer("num_attention_heads");
  block.kv_heads = config.integer("num_key_value_heads", block.heads);
  block.head_dim = config.integer("head_dim", 0);
  options.layers = config.integer("num_hidden_layers");
  block.hidden_dim = config.integer("intermediate_size");
  options.max_length = config.integer("max_position_embeddings");
  block.activation = config.activation("hidden_act", "silu");
  block.norm_epsilon = config.real("rms_norm_eps", 1e-6);
  block.rotary.base = config.real("rope_parameters.rope_theta", config.real("rope_theta", 10000));
  options.tied_head = config.flag("tie_word_embeddings", false);
  return detail::checked_options(options, config.name());
}

/// The options in the metadata of a GGUF file with a Llama, whose queries and keys are stored for
/// interleaved pairs. Throws FileError for settings that heed does not support.
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
  BlockOptions& block = options.block;
  const auto table = file.entry("token_embd.weight").shape();
  options.vocab_size = table.empty() ? 0 : table[0];
  if (file.value<Index>("llama.vocab_size", options.vocab_size) != options.vocab_size) {
    file.fail_at(file.field("llama.vocab_size"), "is not ", options.vocab_size,
                 ", the rows of 'token_embd.weight'");
  }
  block.model_dim = integer("llama.embedding_length");
  block.heads = integer("llama.attention.head_count");
  block.kv_heads = static_cast<Index>(file.value<std::uint32_t>(
      "llama.attention.head_count_kv", static_cast<std::uint32_t>(block.heads)));
  block.head_dim = static_cast<Index>(file.value<std::uint32_t>("llama.attention.key_length", 0));
  options.layers = integer("llama.block_count");
  block.hidden_dim = integer("llama.feed_forward_length");
  options.max_length = integer("llama.context_length");
  block.norm_epsilon =
      static_cast<double>(file.value<float>("llama.attention.layer_norm_rms_epsilon"));
  block.rotary.base = static_cast<double>(file.value<float>("llama.rope.freq_base", 10000));
  block.rotary.dims =
      static_cast<Index>(file.value<std::uint32_t>("llama.rope.dimension_count", 0));
  block.rotary.pairing = RotaryPairing::interleaved;
  options.tied_head = !file.contains("output.weight");
  const Index head_dim = block.head_dim > 0 ? block.head_dim
                         : block.heads > 0  ? block.model_dim / block.heads
                                            : 0;
  detail::check_llama_attention(file, options.max_length, head_dim);
  return detail::checked_options(options, file.name());
}

/// Loads a Llama from a folder with config.json and model.safetensors, as Hugging Face publishes it
/// (Touvron et al. 2023). Throws FileError.
template <Scalar T>
LanguageModel<T> load_llama(const std::string& folder) {
  const auto options = llama_options(ModelConfig::read(folder + "/config.json"));
  const WeightFile file(load_safetensors(folder + "/model.safetensors"));
  const auto& names = options.tied_head ? tied_llama_names : llama_names;
  return load_weights<LanguageModel<T>>(file, names, options);
}
/// Loads a Llama from a GGUF file, with dequantized weights. Throws FileError.
template <Scalar T>
LanguageModel<T> load_llama(const Gguf& file) {
  return load_weights<LanguageModel<T>>(WeightFile(file), gguf_llama_names, llama_options(file));
}

namespace detail {

/// The transpose of a matrix in a file, packed in its stored type if heed multiplies with that
/// type; otherwise empty.
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

/// Packs a Llama for inference with the file's own weights: Q4_0, Q4_1 and Q8_0 stay quantized and
/// are dequantized where they are used, so that a token reads a sixth or a quarter of the memory;
/// other types are packed as floats. Exact products give the same bits as before; rounded products
/// take about half the time and differ as described at matrix_product. The model must come from
/// `file`; throws InvalidArgument if the two have different numbers of blocks or different heads.
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

/// The tokenizer of a loaded model.
struct ModelTokenizer {
  std::variant<BytePairEncoding, WordPiece> kind;

  std::vector<Index> encode(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const {
    return std::visit([&](const auto& tokenizer) { return tokenizer.encode(text, special); }, kind);
  }
  std::string decode(std::span<const Index> tokens) const {
    return std::visit([&](const auto& tokenizer) { return tokenizer.decode(tokens); }, kind);
  }
  Index vocab_size() const {
    return std::visit([](const auto& tokenizer) { return tokenizer.vocab_size(); }, kind);
  }
};

/// A published model with its tokenizer.
template <Scalar T>
struct LoadedModel {
  std::string architecture;  // bert, gpt2 or llama
  std::variant<LanguageModel<T>, Encoder<T>> model;
  std::optional<ModelTokenizer> tokenizer;  // empty if the files have none

  /// The model by its type: GPT-2 and Llama are language models, BERT is an encoder. Throws
  /// ShapeError for the wrong one.
  LanguageModel<T>& language_model() { return as<LanguageModel<T>>(*this, "language model"); }
  const LanguageModel<T>& language_model() const {
    return as<LanguageModel<T>>(*this, "language model");
  }
  Encoder<T>& encoder() { return as<Encoder<T>>(*this, "encoder"); }
  const Encoder<T>& encoder() const { return as<Encoder<T>>(*this, "encoder"); }

 private:
  template <class Model>
  static auto& as(auto& loaded, const char* kind) {
    auto* model = std::get_if<Model>(&loaded.model);
    if (model == nullptr) throw_shape_error("a ", loaded.architecture, " is no ", kind);
    return *model;
  }
};

namespace detail {

inline bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}
inline bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

/// The vocab.txt of a BERT, with the settings of a tokenizer_config.json beside it.
inline WordPiece word_piece_in(const std::string& folder) {
  WordPieceOptions options;
  if (const std::string path = folder + "/tokenizer_config.json"; exists(path)) {
    const auto config = ModelConfig::read(path);
    options.lower_case = config.flag("do_lower_case", true);
    options.strip_accents = config.flag("strip_accents", options.lower_case);
    options.split_cjk = config.flag("tokenize_chinese_chars", true);
  }
  return WordPiece::read(folder + "/vocab.txt", options);
}

template <Scalar T>
LoadedModel<T> load_folder(const std::string& folder) {
  const auto config = ModelConfig::read(folder + "/config.json");
  const std::string architecture = config.text("model_type", "");
  const auto byte_pairs = [&]() -> std::optional<ModelTokenizer> {
    const std::string path = folder + "/tokenizer.json";
    if (!exists(path)) return {};
    return ModelTokenizer{load_tokenizer(path)};
  };
  if (architecture == "llama") return {architecture, load_llama<T>(folder), byte_pairs()};
  if (architecture == "gpt2") return {architecture, load_gpt2<T>(folder), byte_pairs()};
  if (architecture != "bert") {
    config.fail_at("model_type", "is ", quote(architecture), ", expected bert, gpt2 or llama");
  }
  std::optional<ModelTokenizer> tokenizer;
  if (exists(folder + "/vocab.txt")) tokenizer = ModelTokenizer{word_piece_in(folder)};
  return {architecture, load_bert<T>(folder), std::move(tokenizer)};
}

template <Scalar T>
LoadedModel<T> load_gguf(const Gguf& file) {
  const auto architecture = file.value<std::string_view>("general.architecture");
  if (architecture != "llama") {
    file.fail_at(file.field("general.architecture"), "is ", quote(architecture),
                 ", expected llama (bert and gpt2 are read from folders)");
  }
  std::optional<ModelTokenizer> tokenizer;
  if (file.has_field("tokenizer.ggml.model")) tokenizer = ModelTokenizer{load_tokenizer(file)};
  return {std::string(architecture), load_llama<T>(file), std::move(tokenizer)};
}

}  // namespace detail

/// Loads a model and its tokenizer from a folder as Hugging Face publishes it, or from a GGUF file;
/// the files name the architecture. A folder holds config.json and model.safetensors and, for the
/// tokenizer, vocab.txt (BERT) or tokenizer.json (GPT-2, Llama). Throws FileError for unsupported
/// architectures, settings and tokenizers; load_bert, load_gpt2 and load_llama load the model
/// without a tokenizer.
template <Scalar T = float>
LoadedModel<T> load_model(const std::string& path) {
  auto loaded = detail::is_folder(path) ? detail::load_folder<T>(path)
                                        : detail::load_gguf<T>(Gguf::open(path));
  const Index rows = std::visit(
      [](const auto& model) { return model.input.embedding.weight.extent(0); }, loaded.model);
  if (loaded.tokenizer && loaded.tokenizer->vocab_size() > rows) {
    throw_file_error(path, ": a tokenizer of ", loaded.tokenizer->vocab_size(),
                     " tokens for a model of ", rows);
  }
  return loaded;
}

}  // namespace heed
