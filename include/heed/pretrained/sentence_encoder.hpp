// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/file.hpp>
#include <heed/models/encoder.hpp>
#include <heed/pretrained/load_model.hpp>
#include <heed/text/word_piece.hpp>

namespace heed {

/// Sentences as word pieces, padded to the longest.
struct SentenceBatch {
  Tokens tokens;
  std::vector<Index> lengths;  // of the sentences in tokens, without padding
};

/// Turns sentences into vectors of length 1 whose dot products measure similarity: a BERT, the mean
/// over its tokens, normalized. Reimers and Gurevych, Sentence-BERT, 2019.
template <ModelScalar T>
class SentenceEncoder {
 public:
  /// Sentences are cut to `max_length` tokens; 0: the longest that the model supports. Throws
  /// ShapeError for a vocabulary larger than the model's, and InvalidArgument for one without
  /// [CLS], [SEP] or [PAD] and for a max_length below 2 or above the model's.
  SentenceEncoder(Encoder<T> model, WordPiece tokenizer, Index max_length = 0)
      : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {
    max_length_ = checked_length(max_length, model_.options.max_length);
    if (tokenizer_.vocab_size() > model_.input.embedding.weight.extent(0)) {
      throw_shape_error("SentenceEncoder: a vocabulary of ", tokenizer_.vocab_size(),
                        " for a model of ", model_.input.embedding.weight.extent(0));
    }
    for (const char* name : {"[CLS]", "[SEP]", "[PAD]"}) static_cast<void>(tokenizer_.token(name));
    model_.pack();
  }
  /// Loads a folder with config.json, model.safetensors, a tokenizer and, if it has them, the
  /// tokenizer_config.json, modules.json, 1_Pooling/config.json, and the max_seq_length of
  /// sentence_bert_config.json; see set_products. Throws FileError, also for another pooling than
  /// the mean and for modules other than Transformer, Pooling and Normalize, and InvalidArgument
  /// for `products` that T does not have.
  static SentenceEncoder read(const FilePath& folder, Products products = Products::exact) {
    refuse_other_modules(folder + "/modules.json");
    refuse_other_pooling(folder + "/1_Pooling/config.json");
    auto model = load_bert<T>(folder);
    const Index length = length_in(folder + "/sentence_bert_config.json", model.options.max_length);
    set_products(model, products);
    auto tokenizer = detail::word_piece_in(folder);
    return detail::made_of_file(detail::word_piece_path(folder), [&] {
      return SentenceEncoder(std::move(model), std::move(tokenizer), length);
    });
  }

  const Encoder<T>& model() const { return model_; }
  const WordPiece& tokenizer() const { return tokenizer_; }

  /// Tokens of [CLS] sentence [SEP], cut to max_length; 0: that of the constructor. Throws
  /// InvalidArgument for a max_length below 2 or above the model's.
  SentenceBatch tokens(std::span<const std::string> sentences, Index max_length = 0) const {
    const Index most = checked_length(max_length, max_length_);
    std::vector<std::vector<Index>> rows;
    SentenceBatch batch;
    Index longest = 0;
    for (const std::string& sentence : sentences) {
      rows.push_back(tokenizer_.encode_sentence(sentence, most));
      batch.lengths.push_back(static_cast<Index>(rows.back().size()));
      longest = std::max(longest, batch.lengths.back());
    }
    batch.tokens = Tokens({static_cast<Index>(rows.size()), longest});
    std::fill(batch.tokens.begin(), batch.tokens.end(), tokenizer_.token("[PAD]"));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::copy(rows[i].begin(), rows[i].end(),
                batch.tokens.data() + static_cast<Index>(i) * longest);
    }
    return batch;
  }

  /// The vectors, (sentences, dim). A sentence's vector has the same bits in any batch and with any
  /// padding, which is not computed. Throws ShapeError for lengths that do not fit.
  Tensor<T, 2> embed(const SentenceBatch& batch) const {
    const auto [tokens, offsets] = packed(batch);
    const auto hidden = model_.forward_packed(tokens, offsets);
    const Index dim = hidden.extent(2);
    auto vectors = Tensor<T, 2>::uninitialized({batch.tokens.extent(0), dim});
    for (Index row = 0; row < vectors.extent(0); ++row) {
      const Index first = offsets[static_cast<std::size_t>(row)];
      const Index end = offsets[static_cast<std::size_t>(row) + 1];
      detail::find_mean(hidden.data() + first * dim, end - first, dim, vectors.data() + row * dim);
      double square = 0;
      for (Index d = 0; d < dim; ++d) {
        square += static_cast<double>(vectors(row, d)) * static_cast<double>(vectors(row, d));
      }
      const double length = std::max(std::sqrt(square), 1e-12);
      for (Index d = 0; d < dim; ++d) {
        vectors(row, d) = static_cast<T>(static_cast<double>(vectors(row, d)) / length);
      }
    }
    return vectors;
  }
  Tensor<T, 2> embed(std::span<const std::string> sentences) const {
    return embed(tokens(sentences));
  }

 private:
  Index checked_length(Index given, Index otherwise) const {
    const Index length = given == 0 ? otherwise : given;
    if (length >= 2 && length <= model_.options.max_length) return length;
    throw_invalid_argument("SentenceEncoder: max_length ", length, ", expected 2 to ",
                           model_.options.max_length);
  }
  /// Types are Python classes, "sentence_transformers.models.Pooling"; their modules have moved.
  static void refuse_other_modules(const std::string& path) {
    if (!detail::exists(path)) return;
    const auto bytes = read_file(path);
    detail::JsonReader json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
    json.array([&] {
      std::string type;
      json.object([&](const std::string& key) {
        if (key == "type") {
          type = json.string();
        } else {
          json.skip();
        }
      });
      const std::string name = type.substr(type.rfind('.') + 1);
      if (name == "Transformer" || name == "Pooling" || name == "Normalize") return;
      json.fail("a module ", quote(type), ", expected Transformer, Pooling or Normalize");
    });
    json.end();
  }
  static void refuse_other_pooling(const std::string& path) {
    if (!detail::exists(path)) return;
    const auto config = ModelConfig::read(path);
    const auto mode = config.text("pooling_mode", "mean");
    if (mode != "mean") config.fail_at("pooling_mode", "is ", quote(mode), ", expected mean");
    for (const std::string kind : {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens",
                                   "weightedmean_tokens", "lasttoken"}) {
      const std::string key = "pooling_mode_" + kind;
      const bool mean = kind == "mean_tokens";
      if (config.flag(key, mean) != mean) {
        config.fail_at(key, "is ", mean ? "false, expected true" : "true, expected false");
      }
    }
  }
  /// The length to which the folder has sentences cut, at most that of the model.
  static Index length_in(const std::string& path, Index most) {
    if (!detail::exists(path)) return most;
    const auto config = ModelConfig::read(path);
    const Index length = config.integer("max_seq_length", most);
    if (length < 2) config.fail_at("max_seq_length", "is ", length, ", expected 2 or more");
    return std::min(length, most);
  }

  /// The tokens that are no padding, (1, total), and the borders of their sentences.
  static std::pair<Tokens, std::vector<Index>> packed(const SentenceBatch& batch) {
    detail::check_lengths("SentenceEncoder", batch.lengths, batch.tokens.extents());
    std::vector<Index> offsets = {0};
    for (const Index length : batch.lengths) offsets.push_back(offsets.back() + length);
    Tokens tokens({1, offsets.back()});
    for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
      const Index* from = batch.tokens.data() + static_cast<Index>(i) * batch.tokens.extent(1);
      std::copy_n(from, batch.lengths[i], tokens.data() + offsets[i]);
    }
    return {std::move(tokens), std::move(offsets)};
  }

  Encoder<T> model_;
  WordPiece tokenizer_;
  Index max_length_ = 0;
};

}  // namespace heed
