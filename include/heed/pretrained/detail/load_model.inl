// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/pretrained/load_model.hpp>, which includes this file.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <variant>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/quantized.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/detail/tensor_file.hpp>
#include <heed/tensor/packed_matrix.hpp>

namespace heed {

HEED_INLINE EncoderOptions bert_options(const ModelConfig& config) {
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

HEED_INLINE LanguageModelOptions gpt2_options(const ModelConfig& config) {
  config.expect_kind("gpt2");
  detail::refuse_unsupported(config);
  if (!config.flag("scale_attn_weights", true)) {
    config.fail_at("scale_attn_weights", "is false, expected true");
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
  options.tied_head = config.flag("tie_word_embeddings", true);
  block.activation = config.activation("activation_function", "gelu_new");
  block.norm_epsilon = config.real("layer_norm_epsilon", 1e-5);
  block.fused_projection = true;
  return detail::checked_options(options, config.name());
}

namespace detail {

/// The window of all layers in the config.json of a Mistral; 0: none. Throws FileError for one of
/// another model: a Llama has none in transformers, and a Qwen only in some of its layers.
inline Index llama_window(const ModelConfig& config) {
  const std::string key = "sliding_window", kind = config.text("model_type", "llama");
  const bool usual = kind == "llama" && config.has(key);  // a Qwen has it switched off
  const bool uses = kind == "mistral" || config.flag("use_sliding_window", usual);
  if (!uses || config.is_null(key)) return 0;
  // transformers gives a Mistral that says nothing, and a Qwen with a window, one of 4096.
  const Index window = config.integer(key, 4096);
  if (kind == "mistral" && window > 0) return window;
  if (window >= config.integer("max_position_embeddings")) return 0;
  config.fail_at(key, "is ", window, config.has(key) ? "" : " unless given",
                 ", expected null, or max_position_embeddings or more",
                 kind == "mistral" ? "" : ", or 'use_sliding_window' false");
}

/// The entry of a config.json that names the kind of rotary positions; empty if none does. Older
/// files have them in `rope_scaling`. Throws FileError where two entries differ.
inline std::string rotary_kind_entry(const ModelConfig& config) {
  std::string found;
  for (const char* key : {"rope_scaling.rope_type", "rope_scaling.type",
                          "rope_parameters.rope_type", "rope_parameters.type"}) {
    if (!config.has(key)) continue;
    const auto kind = config.text(key, "");
    if (found.empty()) found = key;
    if (const auto first = config.text(found, ""); kind != first) {
      config.fail_at(key, "is ", quote(kind), ", and ", quote(found), " is ", quote(first));
    }
  }
  return found;
}

inline double rotary_base(const ModelConfig& config) {
  const std::string key = "rope_parameters.rope_theta", older = "rope_scaling.rope_theta";
  if (config.has(key) && config.real(older, config.real(key)) != config.real(key)) {
    config.fail_at(key, "is ", config.real(key), ", and 'rope_scaling' has ", config.real(older));
  }
  return config.real(key, config.real(older, config.real("rope_theta", 10000)));
}

/// The rotary positions in a Llama's config.json. Throws FileError for kinds that heed has not.
inline RotaryOptions rotary_options(const ModelConfig& config) {
  RotaryOptions rotary;
  rotary.base = rotary_base(config);
  const std::string entry = rotary_kind_entry(config);
  const std::string kind = config.text(entry, "default");
  const std::string object = entry.substr(0, entry.find('.') + 1);
  if (kind == "linear") {
    rotary.scaling = config.real(object + "factor");
  } else if (kind == "llama3") {
    const std::string length = "original_max_position_embeddings";
    const double own = config.real(object + length, config.real("max_position_embeddings"));
    rotary.low_frequencies = {.factor = config.real(object + "factor"),
                              .low_turns = config.real(object + "low_freq_factor"),
                              .high_turns = config.real(object + "high_freq_factor"),
                              .original_length = config.real(length, own)};
  } else if (kind != "default") {
    config.fail_at(entry, "is ", quote(kind), ", expected default, linear or llama3");
  }
  for (const std::string other : {"rope_parameters.", "rope_scaling."}) {
    const double factor = config.real(other + "factor", 1);
    if (factor == 1 || (kind != "default" && other == object)) continue;
    config.fail_at(other + "factor", "is ", factor, ", expected 1");
  }
  return rotary;
}

/// A Llama with what models of its family have beside it.
inline LanguageModelOptions llama_of_kind(std::string_view kind) {
  auto options = LanguageModelOptions::llama();
  if (kind == "qwen2") options.block.query_key_value_bias = true;
  if (kind == "qwen3") options.block.query_key_norm = NormKind::rms;
  return options;
}

}  // namespace detail

HEED_INLINE LanguageModelOptions llama_options(const ModelConfig& config) {
  const auto kind = config.text("model_type", "llama");
  if (!detail::is_llama(kind)) {
    config.fail_at("model_type", "is ", quote(kind), ", expected ", detail::llama_kinds);
  }
  auto options = detail::llama_of_kind(kind);
  BlockOptions& block = options.block;
  block.window = detail::llama_window(config);
  block.rotary = detail::rotary_options(config);
  detail::refuse_unsupported(config);
  options.vocab_size = config.integer("vocab_size");
  block.model_dim = config.integer("hidden_size");
  block.heads = config.integer("num_attention_heads");
  block.kv_heads = config.integer("num_key_value_heads", block.heads);
  block.head_dim = config.integer("head_dim", kind == "qwen3" ? 128 : 0);
  options.layers = config.integer("num_hidden_layers");
  block.hidden_dim = config.integer("intermediate_size");
  options.max_length = config.integer("max_position_embeddings");
  block.activation = config.activation("hidden_act", "silu");
  block.norm_epsilon = config.real("rms_norm_eps", 1e-6);
  options.tied_head = config.flag("tie_word_embeddings", false);
  return detail::checked_options(options, config.name());
}

namespace detail {

/// The rotary positions in the metadata of a GGUF file with a Llama, as llama.cpp reads them.
inline RotaryOptions rotary_options(const Gguf& file) {
  const std::string architecture = llama_kind(file), rope = architecture + ".rope.";
  RotaryOptions rotary;
  rotary.base = static_cast<double>(file.value<float>(rope + "freq_base", 10000));
  rotary.dims = static_cast<Index>(file.value<std::uint32_t>(rope + "dimension_count", 0));
  // llama.cpp's converter reorders the rows of a Llama's queries and keys, not those of a Qwen.
  if (architecture == "llama") rotary.pairing = RotaryPairing::interleaved;
  const std::string type = rope + "scaling.type";
  const auto kind = file.value<std::string_view>(type, "linear");
  if (kind != "linear" && kind != "none") {
    file.fail_at(file.field(type), "is ", quote(kind), ", expected linear or none");
  }
  for (const std::string& key : {rope + "scale_linear", rope + "scaling.factor"}) {
    if (kind == "none" || !file.has_field(key)) continue;
    const double factor = number_in(file, file.field(key));
    rotary.scaling = factor == 0 ? 1 : factor;
  }
  constexpr std::string_view divisors = "rope_freqs.weight";
  if (file.contains(divisors)) {
    const auto shape = file.entry(divisors).shape();
    if (shape.size() != 1 || shape[0] > 1024) {  // more would take memory before heads are known
      throw_file_error(file.name(), ": ", quote(divisors), " is ", shape,
                       ", expected a list of at most 1024");
    }
    const auto read = file.tensor<double, 1>(divisors);
    rotary.divisors.assign(read.begin(), read.end());
  }
  return rotary;
}

}  // namespace detail

HEED_INLINE LanguageModelOptions llama_options(const Gguf& file) {
  detail::refuse_unsupported_llama(file);
  const std::string kind = detail::llama_kind(file), own = kind + ".";
  const auto integer = [&](const char* key, auto... otherwise) {
    return static_cast<Index>(
        file.value<std::uint32_t>(own + key, static_cast<std::uint32_t>(otherwise)...));
  };
  auto options = detail::llama_of_kind(kind);
  BlockOptions& block = options.block;
  const auto table = file.entry("token_embd.weight").shape();
  options.vocab_size = table.empty() ? 0 : table[0];
  if (file.value<Index>(own + "vocab_size", options.vocab_size) != options.vocab_size) {
    file.fail_at(file.field(own + "vocab_size"), "is not ", options.vocab_size,
                 ", the rows of 'token_embd.weight'");
  }
  block.model_dim = integer("embedding_length");
  block.heads = integer("attention.head_count");
  block.kv_heads = integer("attention.head_count_kv", block.heads);
  block.head_dim = integer("attention.key_length", 0);
  options.layers = integer("block_count");
  block.hidden_dim = integer("feed_forward_length");
  options.max_length = integer("context_length");
  block.norm_epsilon =
      static_cast<double>(file.value<float>(own + "attention.layer_norm_rms_epsilon"));
  block.rotary = detail::rotary_options(file);
  options.tied_head = !file.contains("output.weight");
  const Index head_dim = block.head_dim > 0 ? block.head_dim
                         : block.heads > 0  ? block.model_dim / block.heads
                                            : 0;
  detail::check_llama_attention(file, options.max_length, head_dim);
  return detail::checked_options(options, file.name());
}

namespace detail {

/// Products in int16 are of quantized weights alone.
inline Products products_of_floats(Products products) {
  return products == Products::bfloat16 ? products : Products::exact;
}

/// The transpose of a matrix in a file, packed in its stored type if heed multiplies with that
/// type, otherwise as floats or, for products in bfloat16, rounded to bfloat16.
inline PackedMatrix<float> packed_as_stored(const WeightFile& file, const std::string& name,
                                            Products products) {
  const auto shape = file.shape(name);
  const auto type = file.type(name);
  const auto blocks = [&]<class Block>(Block) {
    return PackedMatrix<float>::transposed_blocks<Block>(file.stored(name), shape[1], shape[0],
                                                         products);
  };
  if (type == "Q4_1") return blocks(Q4_1{});
  if (type == "Q4_0") return blocks(Q4_0{});
  if (type == "Q8_0") return blocks(Q8_0{});
  if (type == "BF16") return blocks(bfloat16{});
  if (type == "F16") return blocks(float16{});
  const auto weights = file.tensor<float, 2>(name);
  return PackedMatrix<float>(weights.view().transpose(), products_of_floats(products));
}

inline LanguageModel<float> packed_llama(const WeightFile& file, const WeightNames& names,
                                         const LanguageModelOptions& options, Products products) {
  auto model = load_part<LanguageModel<float>>(file, names, options, LoadedPart::without_matrices);
  WeightMatch match(file, names);
  const auto packed = [&](const std::string& name) {
    return packed_as_stored(file, match.name_of(name + ".weight").name, products);
  };
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    auto& block = model.blocks[i];
    const std::string attention = message("blocks.", i, ".attention.");
    const std::string feed_forward = message("blocks.", i, ".feed_forward.");
    block.attention.products = products_of_floats(products);
    block.attention.projections.query->packed = packed(attention + "query");
    block.attention.projections.key->packed = packed(attention + "key");
    block.attention.projections.value->packed = packed(attention + "value");
    block.attention.out.packed = packed(attention + "out");
    block.feed_forward.gate->packed = packed(feed_forward + "gate");
    block.feed_forward.up.packed = packed(feed_forward + "up");
    block.feed_forward.down.packed = packed(feed_forward + "down");
  }
  if (model.head.own) {
    model.head.own->packed = packed("head");
  } else {
    match.let_head_stand_in();
    model.input.embedding.packed = packed("embedding");
    model.head.reads_packed = true;
  }
  return model;
}

}  // namespace detail

HEED_INLINE LanguageModel<float> load_packed_llama(const Gguf& file, Products products) {
  return detail::packed_llama(WeightFile(file), gguf_llama_names, llama_options(file), products);
}

HEED_INLINE LanguageModel<float> load_packed_llama(const FilePath& folder, Products products) {
  const auto options = llama_options(ModelConfig::read(folder + "/config.json"));
  return detail::packed_llama(detail::weights_in(folder), llama_names, options, products);
}

HEED_INLINE LoadedModel<float> load_packed_model(const FilePath& path, Products products) {
  auto loaded = detail::load_with<float>(
      path, [&](const auto& from) { return load_packed_llama(from, products); });
  if (loaded.architecture != "llama") {
    const auto pack = [&](auto& model) {
      set_products(model, detail::products_of_floats(products));
      model.pack();
    };
    std::visit(pack, loaded.model);
  }
  return loaded;
}

HEED_INLINE std::vector<Index> ModelTokenizer::encode(std::string_view text,
                                                      SpecialTokens special) const {
  return std::visit([&](const auto& tokenizer) { return tokenizer.encode(text, special); }, kind);
}

HEED_INLINE std::string ModelTokenizer::decode(const OwnedArray<Index>& tokens) const {
  return std::visit([&](const auto& tokenizer) { return tokenizer.decode(tokens); }, kind);
}

HEED_INLINE Index ModelTokenizer::vocab_size() const {
  return std::visit([](const auto& tokenizer) { return tokenizer.vocab_size(); }, kind);
}

namespace detail {

HEED_INLINE bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

HEED_INLINE bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

HEED_INLINE bool is_llama(std::string_view kind) {
  return kind == "llama" || kind == "mistral" || kind == "qwen2" || kind == "qwen3";
}

/// Calls visit(json, tensor, file) for every entry of `weight_map` in the text of an index.
template <class Visit>
void for_each_indexed(std::string_view text, const std::string& name, const Visit& visit) {
  JsonReader json(text, name);
  bool found = false;
  json.object([&](const std::string& key) {
    if (key != "weight_map") return json.skip();
    if (std::exchange(found, true)) json.fail("'weight_map' twice");
    json.object([&](const std::string& tensor) { visit(json, tensor, json.string()); });
  });
  json.end();
  if (!found) throw_file_error(name, ": no 'weight_map'");
}

/// Whether an index may name that file: one in its own folder.
inline bool is_part_name(std::string_view file) {
  constexpr std::string_view elsewhere("/\\\0", 3);
  return file.ends_with(".safetensors") && file.find_first_of(elsewhere) == file.npos &&
         file.find("..") == file.npos;
}

/// The files of a folder that its model.safetensors.index.json names.
inline WeightFile indexed_weights(const std::string& folder, const std::string& index) {
  constexpr std::size_t longest = std::size_t{1} << 24, most_files = 1000;
  const auto bytes = read_at_most(index, longest);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::map<std::string, std::optional<Safetensors>> files;
  ProblemList problems("; ");
  for_each_indexed(text, index, [&](const auto& json, const auto& tensor, const auto& name) {
    if (!is_part_name(name)) {
      json.fail(quote(name), ", expected the name of a .safetensors file in the same folder");
    }
    const auto [found, is_new] = files.try_emplace(name);
    if (files.size() > most_files) json.fail("more than ", most_files, " files");
    auto& file = found->second;
    const std::string path = folder + "/" + name;
    if (is_new && exists(path)) file = load_safetensors(path);
    if (is_new && !file) problems.add("no file ", quote(name));
    if (file && !file->contains(tensor)) problems.add(quote(name), " has no ", quote(tensor));
  });
  if (problems.count() > 0) {
    throw_file_error(index, ": the index and the files differ: ", problems.text());
  }
  std::vector<Safetensors> all;
  all.reserve(files.size());
  for (auto& [name, file] : files) all.push_back(std::move(*file));
  return {std::move(all), index};
}

HEED_INLINE WeightFile weights_in(const std::string& folder) {
  const std::string path = folder + "/model.safetensors", index = path + ".index.json";
  if (!exists(path) && exists(index)) return indexed_weights(folder, index);
  for (const char* other : {"/pytorch_model.bin", "/pytorch_model.bin.index.json"}) {
    if (exists(path) || !exists(folder + other)) continue;
    throw_file_error(folder, other, ": not read, expected model.safetensors, or several files and ",
                     "model.safetensors.index.json");
  }
  return WeightFile(load_safetensors(path));
}

HEED_INLINE std::string word_piece_path(const std::string& folder) {
  const bool json = !exists(folder + "/vocab.txt") && exists(folder + "/tokenizer.json");
  return folder + (json ? "/tokenizer.json" : "/vocab.txt");
}

HEED_INLINE WordPiece word_piece_in(const std::string& folder) {
  const std::string vocabulary = word_piece_path(folder);
  if (vocabulary.ends_with(".json")) return load_word_piece(vocabulary);
  const std::string path = folder + "/tokenizer_config.json";
  const ModelConfig config = exists(path) ? ModelConfig::read(path) : ModelConfig("{}", path);
  WordPieceOptions options;
  options.lower_case = config.flag("do_lower_case", true);
  options.strip_accents = config.flag("strip_accents", options.lower_case);
  options.split_cjk = config.flag("tokenize_chinese_chars", true);
  auto tokenizer = WordPiece::read(vocabulary, options);
  // Added tokens have the numbers behind the vocabulary.
  const auto added = message("added_tokens_decoder.", tokenizer.vocab_size(), ".content");
  if (config.has(added)) {
    config.fail_at(added, "is ", quote(config.text(added, "")), ", which vocab.txt has not");
  }
  return tokenizer;
}

}  // namespace detail

}  // namespace heed
