// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/text.hpp>
#include <heed/io/file.hpp>
#include <heed/text/tokenizer.hpp>

namespace heed {

namespace detail {

/// The names of BERT's own special tokens.
inline constexpr std::string_view special_pieces[] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};

}  // namespace detail

/// Options for preparing text; the defaults are those of BERT's "uncased" models.
struct WordPieceOptions {
  bool lower_case = true;
  bool strip_accents = true;
  bool split_cjk = true;     // every Chinese character is a word
  Index longest_word = 100;  // characters; a longer word is unknown
  /// Tokens whose text is a name, beside [UNK], [CLS], [SEP], [PAD] and [MASK].
  std::vector<Index> special = {};
};

/// BERT's tokenizer: words and punctuation, each cut greedily into the longest pieces in the
/// vocabulary; pieces inside a word begin with `##`. Same tokens as the original (transformers'
/// BertTokenizer). Schuster and Nakajima, Japanese and Korean voice search, 2012; Devlin et al.,
/// BERT, 2019.
class WordPiece {
 public:
  /// The tokens by number; `[CLS]`, `[SEP]`, `[PAD]` and `[MASK]` are optional. Throws
  /// InvalidArgument where `[UNK]` is missing, for duplicates and for special tokens that are none.
  explicit WordPiece(TextList tokens, const WordPieceOptions& options = {});
  /// Reads a vocab.txt with one token per line. Throws FileError.
  static WordPiece read(const FilePath& path, const WordPieceOptions& options = {});
  /// The same from the file's text; `name` appears in error messages.
  static WordPiece parse(std::string_view text, const std::string& name,
                         const WordPieceOptions& options = {});

  Index vocab_size() const { return vocabulary_.size(); }
  /// The token with a name, e.g. "[PAD]". Throws InvalidArgument if there is none.
  Index token(std::string_view name) const;
  /// A token's name: "play", "##ing".
  std::string name(Index token) const { return std::string(vocabulary_.text(token)); }

  std::vector<Index> encode(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const;
  /// `[CLS]`, the tokens of the text, `[SEP]`, cut to at most `longest` tokens in all.
  /// Throws InvalidArgument for a `longest` below 2 and where the vocabulary lacks one of the two.
  std::vector<Index> encode_sentence(std::string_view text, Index longest = 512) const;
  /// The words with single spaces between them; anything that encoding dropped stays lost.
  std::string decode(const OwnedArray<Index>& tokens) const;

 private:
  void encode_plain(std::string_view text, std::vector<Index>& tokens) const;

  void fold(char32_t code, FunctionRef<void(char32_t)> visit) const;
  void put(char32_t letter, std::string& word, std::vector<Index>& tokens) const;

  /// Appends the pieces of a word, or one unknown token, and clears the word.
  void flush(std::string& word, std::vector<Index>& tokens) const;

  WordPieceOptions options_;
  Vocabulary vocabulary_;
  detail::SpecialTokenFinder special_;
  Index unknown_ = 0;
  std::size_t longest_token_ = 0;
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/text/detail/word_piece.inl>
#endif
