// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/io/file.hpp>
#include <heed/models/encoder.hpp>
#include <heed/pretrained/load_model.hpp>
#include <heed/text/word_piece.hpp>

namespace heed {

/// Sentences as word pieces, padded to the longest.
struct SentenceBatch {
  Tokens tokens;               // (sentences, longest)
  std::vector<Index> lengths;  // number of tokens of each sentence, without padding
};

namespace detail {

/// Throws FileError for a folder with other modules than Transformer, Pooling and Normalize, or
/// with another pooling than the mean.
void check_sentence_folder(const std::string& folder);
/// The length to which a folder has sentences cut, at most that of its model.
Index sentence_length_in(const std::string& folder, Index most);
/// Sentences as the tokens of [CLS] sentence [SEP], cut to a length.
SentenceBatch sentence_batch(const WordPiece& tokenizer, std::span<const std::string> sentences,
                             Index length);
/// The tokens that are no padding, (1, total), and the borders of their sentences.
std::pair<Tokens, std::vector<Index>> packed_sentences(const SentenceBatch& batch);

}  // namespace detail

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
  /// tokenizer_config.json, modules.json, 1_Pooling/config.json, and sentence_bert_config.json,
  /// whose max_seq_length counts up to that of the model; see set_products. Throws FileError, also
  /// for another pooling than the mean and for modules other than Transformer, Pooling and
  /// Normalize, and InvalidArgument for `products` that T does not have.
  static SentenceEncoder read(const FilePath& folder, Products products = Products::exact) {
    detail::check_sentence_folder(folder);
    auto model = load_bert<T>(folder);
    const Index length = detail::sentence_length_in(folder, model.options.max_length);
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
    return detail::sentence_batch(tokenizer_, sentences, checked_length(max_length, max_length_));
  }

  /// The vectors, (sentences, dim). A sentence's vector has the same bits in any batch; padding is
  /// not computed. Throws ShapeError for lengths that do not fit.
  Tensor<T, 2> embed(const SentenceBatch& batch) const {
    const auto [tokens, offsets] = detail::packed_sentences(batch);
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
  /// The same of sentences, cut to the max_length of the constructor.
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

  Encoder<T> model_;
  WordPiece tokenizer_;
  Index max_length_ = 0;
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/pretrained/detail/sentence_encoder.inl>
#endif
