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
#include <heed/core/text_list.hpp>
#include <heed/text/detail/byte_letters.hpp>
#include <heed/text/detail/pair_merger.hpp>
#include <heed/text/pre_tokenizer.hpp>
#include <heed/text/special_tokens.hpp>
#include <heed/text/vocabulary.hpp>

namespace heed {

/// What a byte-level byte-pair encoding is made of, as files hold it.
struct BytePairVocabulary {
  TextList tokens;             // bytes as GPT-2's letters: "Ġthe"
  TextList merges;             // by rank: "Ġ t"
  std::vector<Index> special;  // tokens whose text is a name: "<|im_start|>"
  PreTokenizer pre_tokenizer = PreTokenizer::gpt2;
};

/// Byte-level byte-pair encoding, as of GPT-2, SmolLM2 and many more: text is cut into pieces, and
/// in each the bytes are merged pair by pair. Any text comes back byte for byte, but for bytes that
/// the vocabulary lacks (`has_byte`), which are left out as the originals do. Equal to the
/// originals' (tokenizers) token for token.
class BytePairEncoding {
 public:
  /// Throws InvalidArgument when a merge names no tokens, or something stands twice.
  explicit BytePairEncoding(BytePairVocabulary source) : pre_tokenizer_(source.pre_tokenizer) {
    const Vocabulary vocabulary(std::move(source.tokens));
    const detail::ByteLetters letters;
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
      const auto value = static_cast<char>(byte);
      bytes_[byte] = static_cast<std::int32_t>(vocabulary.find(letters.write({&value, 1})));
    }
    // One after another, each gone before the next: a file of many short texts must not take many
    // times its size.
    read_merges(std::move(source.merges), vocabulary);
    read_special(std::move(source.special), vocabulary);
    read_texts(vocabulary.texts());
  }

  Index vocab_size() const { return static_cast<Index>(texts_.size()); }
  /// Whether the vocabulary has a token for this byte alone.
  bool has_byte(unsigned char byte) const { return bytes_[byte] >= 0; }
  /// The bytes of a token, which may be part of a character; a special token's name.
  std::string text(Index token) const { return std::string(text_of(token)); }
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
      special_.split(texts_, text, plain, [&](Index token) { tokens.push_back(token); });
    }
    return tokens;
  }
  std::string decode(std::span<const Index> tokens) const {
    std::string result;
    for (const Index token : tokens) result += text_of(token);
    return result;
  }

 private:
  std::string_view text_of(Index token) const {
    if (token < 0 || token >= vocab_size()) {
      throw_invalid_argument("token ", token, " of ", vocab_size());
    }
    return texts_[static_cast<std::size_t>(token)];
  }

  void encode_piece(std::string_view piece, std::vector<Index>& tokens) const {
    if (piece.size() > 0x7fffffff)
      throw_invalid_argument("encode: a piece of ", piece.size(), " bytes");
    std::vector<std::int32_t> symbols;
    symbols.reserve(piece.size());
    for (const char byte : piece) {
      const std::int32_t token = bytes_[static_cast<unsigned char>(byte)];
      if (token >= 0) symbols.push_back(token);
    }
    merger_.merge(symbols);
    tokens.insert(tokens.end(), symbols.begin(), symbols.end());
  }

  void read_texts(const TextList& tokens) {
    texts_.reserve(tokens.size(), tokens.characters());
    const detail::ByteLetters letters;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      // What is written in other letters is itself, as the names of special tokens are.
      const auto bytes = letters.read(tokens[i]);
      const bool name = !bytes || special_.contains(static_cast<Index>(i));
      texts_.push_back(name ? tokens[i] : std::string_view(*bytes));
    }
  }

  void read_special(std::vector<Index> special, const Vocabulary& vocabulary) {
    for (const Index token : special) static_cast<void>(vocabulary.text(token));
    special_ = detail::SpecialTokenFinder(vocabulary.texts(), special);
  }

  void read_merges(TextList texts, const Vocabulary& vocabulary) {  // NOLINT: gone when read
    std::vector<detail::PairMerge> merges;
    merges.reserve(texts.size());
    std::string both;
    for (const std::string_view text : texts) {
      const std::size_t space = text.find(' ');
      const std::string_view left = text.substr(0, space);
      const std::string_view right = space == text.npos ? "" : text.substr(space + 1);
      both.assign(left).append(right);
      const Index tokens[] = {vocabulary.find(left), vocabulary.find(right), vocabulary.find(both)};
      for (const Index token : tokens) {
        if (token >= 0) continue;
        throw_invalid_argument("merges: ", merges.size(), " is ", quote(text),
                               ", which names a token that is not in the vocabulary");
      }
      merges.push_back({static_cast<std::int32_t>(tokens[0]), static_cast<std::int32_t>(tokens[1]),
                        static_cast<std::int32_t>(tokens[2])});
    }
    merger_ = detail::PairMerger(merges, vocabulary.size());
  }

  PreTokenizer pre_tokenizer_;
  detail::SpecialTokenFinder special_;
  TextList texts_;
  std::array<std::int32_t, 256> bytes_{};  // the token of each byte, or −1
  detail::PairMerger merger_;
};

}  // namespace heed
