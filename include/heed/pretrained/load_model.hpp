// SPDX-License-Identifier: MIT
#pragma once

#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/scalar.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/models/encoder.hpp>
#include <heed/models/language_model.hpp>
#include <heed/pretrained/bert.hpp>
#include <heed/pretrained/gpt2.hpp>
#include <heed/pretrained/llama.hpp>
#include <heed/pretrained/model_config.hpp>
#include <heed/text/byte_pair_encoding.hpp>
#include <heed/text/load_tokenizer.hpp>
#include <heed/text/vocabulary.hpp>
#include <heed/text/word_piece.hpp>

namespace heed {

/// The tokenizer that came with a model, of whichever kind.
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
  std::optional<ModelTokenizer> tokenizer;  // none: there was none beside the model

  /// The model as what it is: a GPT-2 or a Llama is a language model, a BERT an encoder. Throws
  /// ShapeError for the other one.
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

/// The vocab.txt of a BERT, prepared as tokenizer_config.json beside it says.
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

/// A model and its tokenizer, from a folder as Hugging Face publishes it or from a GGUF file; the
/// file says which architecture it is. A folder holds config.json and model.safetensors and, for
/// the tokenizer, vocab.txt (BERT) or tokenizer.json (GPT-2, Llama). Throws FileError for an
/// architecture that heed has not, with those that it has, and for what the readers refuse, a
/// tokenizer of another kind too: load_bert, load_gpt2 and load_llama read the model alone.
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
