// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/text.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/language_model.hpp>
#include <heed/pretrained/load_weights.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/text/byte_pair_encoding.hpp>
#include <heed/text/load_tokenizer.hpp>
#include <heed/text/tokenizer.hpp>
#include <heed/text/word_piece.hpp>

namespace heed {

namespace detail {

bool is_folder(const std::string& path);
bool exists(const std::string& path);

/// Which model_type of a config.json makes a Llama.
inline constexpr char llama_kinds[] = "llama, mistral, qwen2 or qwen3";
bool is_llama(std::string_view kind);

/// The model.safetensors of a folder or, where there is none, the files that its
/// model.safetensors.index.json names. Throws FileError, which says what is there in their place,
/// or how the index and the files differ.
WeightFile weights_in(const std::string& folder);

}  // namespace detail

/// The options in a BERT's config.json. Throws FileError for settings that heed does not support.
EncoderOptions bert_options(const ModelConfig& config);

/// Loads a BERT from a folder with config.json and model.safetensors, as Hugging Face publishes it
/// (Devlin et al. 2018). Throws FileError.
template <ModelScalar T>
Encoder<T> load_bert(const FilePath& folder) {
  const auto options = bert_options(ModelConfig::read(folder + "/config.json"));
  return load_weights<Encoder<T>>(detail::weights_in(folder), bert_names, options);
}

/// The options in a GPT-2's config.json. Throws FileError for settings that heed does not support.
LanguageModelOptions gpt2_options(const ModelConfig& config);

/// Loads a GPT-2 from a folder with config.json and model.safetensors, as Hugging Face publishes it
/// (Radford et al. 2019). Throws FileError.
template <ModelScalar T>
LanguageModel<T> load_gpt2(const FilePath& folder) {
  const auto options = gpt2_options(ModelConfig::read(folder + "/config.json"));
  return load_weights<LanguageModel<T>>(detail::weights_in(folder), gpt2_names, options);
}

/// The options in the config.json of a Llama or of a model of its family: a Mistral, which may have
/// a window, a Qwen2, which has biases of queries, keys and values, or a Qwen3, which has norms of
/// queries and keys. Throws FileError for settings that heed does not support.
LanguageModelOptions llama_options(const ModelConfig& config);

/// The options in the metadata of a GGUF file with a Llama, whose queries and keys are stored for
/// interleaved pairs, or with a Qwen2 or Qwen3, whose are not. Throws FileError for settings that
/// heed does not support.
LanguageModelOptions llama_options(const Gguf& file);

/// Loads a Llama, Mistral, Qwen2 or Qwen3 from a folder with config.json and model.safetensors, as
/// Hugging Face publishes it (Touvron et al. 2023). Throws FileError.
template <ModelScalar T>
LanguageModel<T> load_llama(const FilePath& folder) {
  const auto options = llama_options(ModelConfig::read(folder + "/config.json"));
  return load_weights<LanguageModel<T>>(detail::weights_in(folder), llama_names, options);
}
/// Loads a Llama, Mistral, Qwen2 or Qwen3 from a GGUF file, with dequantized weights. Throws
/// FileError.
template <ModelScalar T>
LanguageModel<T> load_llama(const Gguf& file) {
  return load_weights<LanguageModel<T>>(WeightFile(file), gguf_llama_names, llama_options(file));
}

/// Loads a Llama for inference, from a GGUF file or a folder: the weights of its matrix products
/// are only packed, in the type in which the file stores them, and never widened as a whole. A
/// weight takes 4.5 bits in Q4_0, 5 in Q4_1, 8.5 in Q8_0, and 16 in BF16 and F16; other types are
/// packed as floats or, for bfloat16 products, rounded to bfloat16. The table of embeddings is in
/// floats, beside the packed copy of a tied head. Exact products give the same bits as load_llama;
/// int16 products with quantized blocks and bfloat16 products with BF16 take about half the time
/// and differ as described at PackedMatrix::transposed_blocks. Throws FileError; reading or writing
/// the parameters of the model is an InvalidArgument.
LanguageModel<float> load_packed_llama(const Gguf& file, Products products = Products::exact);
LanguageModel<float> load_packed_llama(const FilePath& folder, Products products = Products::exact);

/// The tokenizer of a loaded model. `encode` adds no tokens around a text, such as <s>, or the
/// [CLS] and [SEP] of a BERT, as WordPiece::encode_sentence does: std::get<WordPiece>(kind).
struct ModelTokenizer {
  std::variant<BytePairEncoding, WordPiece> kind;

  std::vector<Index> encode(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const;
  std::string decode(const OwnedArray<Index>& tokens) const;
  Index vocab_size() const;
};

/// A published model with its tokenizer.
template <ModelScalar T>
struct LoadedModel {
  std::string architecture;  // bert, gpt2 or llama, which Mistral, Qwen2 and Qwen3 are too
  std::variant<LanguageModel<T>, Encoder<T>> model;
  std::optional<ModelTokenizer> tokenizer;  // empty if the files have none

  /// The model by its type: GPT-2 and Llama are language models, BERT is an encoder. Throws
  /// ShapeError for the wrong one.
  LanguageModel<T>& language_model() & { return as<LanguageModel<T>>(*this, "language model"); }
  const LanguageModel<T>& language_model() const& {
    return as<LanguageModel<T>>(*this, "language model");
  }
  LanguageModel<T> language_model() && { return std::move(language_model()); }
  Encoder<T>& encoder() & { return as<Encoder<T>>(*this, "encoder"); }
  const Encoder<T>& encoder() const& { return as<Encoder<T>>(*this, "encoder"); }
  Encoder<T> encoder() && { return std::move(encoder()); }

 private:
  template <class Model>
  static auto& as(auto& loaded, const char* kind) {
    auto* model = std::get_if<Model>(&loaded.model);
    if (model == nullptr) throw_shape_error("a ", loaded.architecture, " is no ", kind);
    return *model;
  }
};

namespace detail {

/// The vocab.txt of a BERT, or, where there is none, its tokenizer.json, if there is one.
std::string word_piece_path(const std::string& folder);
/// The tokenizer in that file; settings for a vocab.txt are in a tokenizer_config.json beside it.
WordPiece word_piece_in(const std::string& folder);

template <ModelScalar T, class LoadLlama>
LoadedModel<T> load_folder(const std::string& folder, const LoadLlama& llama) {
  const auto config = ModelConfig::read(folder + "/config.json");
  const std::string architecture = config.text("model_type", "");
  const auto byte_pairs = [&]() -> std::optional<ModelTokenizer> {
    const std::string path = folder + "/tokenizer.json";
    if (!exists(path)) return {};
    return ModelTokenizer{load_tokenizer(path)};
  };
  if (is_llama(architecture)) return {"llama", llama(folder), byte_pairs()};
  if (architecture == "gpt2") return {architecture, load_gpt2<T>(folder), byte_pairs()};
  if (architecture != "bert") {
    config.fail_at("model_type", "is ", quote(architecture), ", expected bert, gpt2, ",
                   llama_kinds);
  }
  std::optional<ModelTokenizer> tokenizer;
  if (exists(word_piece_path(folder))) tokenizer = ModelTokenizer{word_piece_in(folder)};
  return {architecture, load_bert<T>(folder), std::move(tokenizer)};
}

template <ModelScalar T, class LoadLlama>
LoadedModel<T> load_gguf(const Gguf& file, const LoadLlama& llama) {
  llama_kind(file);  // refuses others before it reads their tokenizer
  std::optional<ModelTokenizer> tokenizer;
  if (file.has_field("tokenizer.ggml.model")) tokenizer = ModelTokenizer{load_tokenizer(file)};
  return {"llama", llama(file), std::move(tokenizer)};
}

/// Loads a model; `llama` makes that of a folder or a Gguf.
template <ModelScalar T, class LoadLlama>
LoadedModel<T> load_with(const std::string& path, const LoadLlama& llama) {
  if (path.ends_with(".safetensors") && !is_folder(path)) {
    throw_file_error(path, ": the weights alone, expected the folder of a model or a GGUF file");
  }
  auto loaded =
      is_folder(path) ? load_folder<T>(path, llama) : load_gguf<T>(Gguf::open(path), llama);
  const Index rows = std::visit(
      [](const auto& model) { return model.input.embedding.weight.extent(0); }, loaded.model);
  if (loaded.tokenizer && loaded.tokenizer->vocab_size() > rows) {
    throw_file_error(path, ": a tokenizer of ", loaded.tokenizer->vocab_size(),
                     " tokens for a model of ", rows);
  }
  return loaded;
}

}  // namespace detail

/// Loads a model and its tokenizer from a folder as Hugging Face publishes it, or from a GGUF file;
/// the files name the architecture. A folder holds config.json, the weights in model.safetensors,
/// or in several files with a model.safetensors.index.json, and, for the tokenizer, vocab.txt (BERT
/// alone) or tokenizer.json. Throws FileError for unsupported architectures, settings and
/// tokenizers; load_bert, load_gpt2 and load_llama load the model without a tokenizer.
template <ModelScalar T = float>
LoadedModel<T> load_model(const FilePath& path) {
  return detail::load_with<T>(path, [](const auto& from) { return load_llama<T>(from); });
}

/// The same for inference: a Llama as load_packed_llama has it, other models with weights in the
/// order in which inference reads them (`pack`), as floats or, for bfloat16 products, rounded to
/// bfloat16.
LoadedModel<float> load_packed_model(const FilePath& path, Products products = Products::exact);

#if defined(HEED_COMPILED)
extern template LoadedModel<float> load_model(const FilePath&);
extern template LanguageModel<float> load_llama(const FilePath&);
extern template LanguageModel<float> load_llama(const Gguf&);
extern template LanguageModel<float> load_gpt2(const FilePath&);
extern template Encoder<float> load_bert(const FilePath&);
#endif

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/pretrained/detail/load_model.inl>
#endif
