// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/text/byte_letters.hpp>
#include <heed/text/pair_merger.hpp>
#include <heed/text/pre_tokenizer.hpp>
#include <heed/text/special_tokens.hpp>
#include <heed/text/vocabulary.hpp>

namespace heed {

/// What a byte-level byte-pair encoding is made of, as files hold it.
struct BytePairVocabulary {
  std::vector<std::string> tokens;  // bytes as GPT-2's letters: "Ġthe"
  std::vector<std::string> merges;  // by rank: "Ġ t"
  std::vector<Index> special;       // tokens whose text is a name: "<|im_start|>"
  PreTokenizer pre_tokenizer = PreTokenizer::gpt2;
};

/// Byte-level byte-pair encoding, as of GPT-2, SmolLM2 and many more: text is cut into pieces, and
/// in each the bytes are merged pair by pair. Any text comes back byte for byte, but for bytes that
/// the vocabulary lacks (`has_byte`), which are left out as the originals do. Equal to the
/// originals' (tokenizers) token for token.
class BytePairEncoding {
 public:
  /// Throws ShapeError when a merge names no tokens, or something stands twice.
  explicit BytePairEncoding(const BytePairVocabulary& source)
      : pre_tokenizer_(source.pre_tokenizer) {
    const Vocabulary vocabulary(source.tokens);
    std::vector<std::pair<std::string, Index>> special;
    for (const Index token : source.special) special.emplace_back(vocabulary.text(token), token);
    special_ = detail::SpecialTokenFinder(std::move(special));
    read_texts(source);
    const detail::ByteLetters letters;
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
      const auto value = static_cast<char>(byte);
      bytes_[byte] = static_cast<std::int32_t>(vocabulary.find(letters.write({&value, 1})));
    }
    read_merges(source, vocabulary);
  }

  Index vocabulary_size() const { return static_cast<Index>(texts_.size()); }
  /// Whether the vocabulary has a token for this byte alone.
  bool has_byte(unsigned char byte) const { return bytes_[byte] >= 0; }
  /// The bytes of a token, which may be part of a character; a special token's name.
  const std::string& text(Index token) const {
    if (token < 0 || token >= vocabulary_size()) {
      throw_shape_error("token ", token, " of ", vocabulary_size());
    }
    return texts_[static_cast<std::size_t>(token)];
  }
  bool is_special(Index token) const { return special_.contains(token); }

  std::vector<Index> encode(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const {
    std::vector<Index> tokens;
    const auto plain = [&](std::string_view part) {
      for_each_piece(part, pre_tokenizer_,
                     [&](std::string_view piece) { encode_piece(piece, tokens); });
    };
    if (special == SpecialTokens::as_text) {
      plain(text);
    } else {
      special_.split(text, plain, [&](Index token) { tokens.push_back(token); });
    }
    return tokens;
  }
  std::string decode(std::span<const Index> tokens) const {
    std::string result;
    for (const Index token : tokens) result += text(token);
    return result;
  }

 private:
  void encode_piece(std::string_view piece, std::vector<Index>& tokens) const {
    if (piece.size() > 0x7fffffff) throw_shape_error("encode: a piece of ", piece.size(), " bytes");
    std::vector<std::int32_t> symbols;
    symbols.reserve(piece.size());
    for (const char byte : piece) {
      const std::int32_t token = bytes_[static_cast<unsigned char>(byte)];
      if (token >= 0) symbols.push_back(token);
    }
    merger_.merge(symbols);
    tokens.insert(tokens.end(), symbols.begin(), symbols.end());
  }

  void read_texts(const BytePairVocabulary& source) {
    if (source.tokens.size() > 0x7fffffff) throw_shape_error("vocabulary: too many tokens");
    texts_.reserve(source.tokens.size());
    const detail::ByteLetters letters;
    for (std::size_t i = 0; i < source.tokens.size(); ++i) {
      // What is written in other letters is itself, as the names of special tokens are.
      auto bytes = letters.read(source.tokens[i]);
      const bool name = !bytes || special_.contains(static_cast<Index>(i));
      texts_.push_back(name ? source.tokens[i] : std::move(*bytes));
    }
  }

  void read_merges(const BytePairVocabulary& source, const Vocabulary& vocabulary) {
    std::vector<detail::PairMerge> merges;
    merges.reserve(source.merges.size());
    for (const std::string& text : source.merges) {
      const std::size_t space = text.find(' ');
      const std::string left = text.substr(0, space);
      const std::string right = space == std::string::npos ? "" : text.substr(space + 1);
      const Index tokens[] = {vocabulary.find(left), vocabulary.find(right),
                              vocabulary.find(left + right)};
      for (const Index token : tokens) {
        if (token >= 0) continue;
        throw_shape_error("merges: ", merges.size(), " is ", quote(text),
                          ", which names a token that is not in the vocabulary");
      }
      merges.push_back({static_cast<std::int32_t>(tokens[0]), static_cast<std::int32_t>(tokens[1]),
                        static_cast<std::int32_t>(tokens[2])});
    }
    merger_ = detail::PairMerger(merges, vocabulary.size());
  }

  PreTokenizer pre_tokenizer_;
  detail::SpecialTokenFinder special_;
  std::vector<std::string> texts_;
  std::array<std::int32_t, 256> bytes_{};  // the token of each byte, or −1
  detail::PairMerger merger_;
};

}  // namespace heed
