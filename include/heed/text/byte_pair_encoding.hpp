// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/text.hpp>
#include <heed/text/tokenizer.hpp>

namespace heed {

namespace detail {

/// The letters of GPT-2's vocabulary for bytes, which make every token visible text: printable
/// bytes stand for themselves, the others, in order, for U+0100 and up (a space is "Ġ").
class ByteLetters {
 public:
  ByteLetters();

  std::string write(std::string_view bytes) const;
  /// The bytes of a text in these letters; nothing if it has any other letter.
  std::optional<std::string> read(std::string_view letters) const;

 private:
  std::array<char32_t, 256> letters_;
  std::array<std::int16_t, 0x144> bytes_;  // of each letter, or −1
};

/// A merge of byte-pair encoding: the neighbors `left` and `right` become `result`.
struct PairMerge {
  std::int32_t left, right, result;
};

/// Applies merges to a piece of text in the order of their ranks, the leftmost of a rank first, in
/// O(n log n). Sennrich et al., Neural machine translation of rare words with subword units, 2016.
class PairMerger {
 public:
  PairMerger() = default;
  /// Merges by rank, of tokens 0 to `vocabulary` − 1. Throws InvalidArgument for a duplicate pair.
  PairMerger(const std::vector<PairMerge>& merges, Index vocabulary);

  /// Merges the tokens of a piece in place.
  void merge(std::vector<std::int32_t>& tokens) const;

 private:
  struct Entry {
    std::int32_t right, rank, result;
  };
  struct Work;

  std::vector<std::uint32_t> begins_;  // of each left token's merges
  std::vector<Entry> merges_;          // by left token, then right
};

}  // namespace detail

/// The rule that cuts text into pieces before merging; merges never cross pieces.
enum class PreTokenizer {
  gpt2,    // contractions, letters, numbers, other characters (each with a leading space), spaces
  smollm,  // every digit alone, the text between digits as gpt2
  llama3,  // as gpt2, but contractions in any case, up to three numbers without a space, letters
           // with any one character in front, others and spaces with the line ends behind them
  qwen2    // as llama3, but every number alone
};

/// Calls visit(piece) for the pieces of a text in order; joined they are the text again.
void for_each_piece(std::string_view text, PreTokenizer kind,
                    FunctionRef<void(std::string_view)> visit);

/// The parts of a byte-level byte-pair encoding, as tokenizer files store them.
struct BytePairVocabulary {
  TextList tokens;             // bytes as GPT-2's letters: "Ġthe"
  TextList merges;             // by rank: "Ġ t"
  std::vector<Index> special;  // tokens whose text is a name: "<|im_start|>"
  // Those of `special` and `added` that take the white space before, or after, their names:
  // RoBERTa's "<mask>".
  std::vector<Index> takes_space_before, takes_space_after;
  Index unknown = -1;          // the token for a byte that the vocabulary lacks; −1: none
  bool joins_unknown = false;  // one such token for neighbors that are unknown
  PreTokenizer pre_tokenizer = PreTokenizer::gpt2;
  std::vector<Index> added;      // tokens whose text is always read as one, merges or not
  bool ignores_merges = false;   // a piece that is a token is that token, merges or not
  bool nfc = false;              // text between special and added tokens is put into normal form C
  std::vector<Index> added_nfc;  // as `added`, but looked for behind those, in the normal form
};

/// Byte-level byte-pair encoding, as in GPT-2, Llama 3, Qwen2 and many more: text is cut into
/// pieces, and within each piece bytes are merged pair by pair. Any text decodes to the same bytes,
/// with three exceptions, as in the originals: bytes that the vocabulary lacks (`has_byte`) become
/// its unknown token or, without one, are left out; special tokens may take the white space beside
/// them; and text may be put into normal form C (unicode::nfc), as by Qwen2. Same tokens as the
/// originals (Hugging Face tokenizers).
class BytePairEncoding {
 public:
  /// Throws InvalidArgument for a merge of unknown tokens, for duplicates, and for a token of
  /// `added_nfc` that is not in normal form C, where there is `nfc`.
  explicit BytePairEncoding(BytePairVocabulary source);

  Index vocab_size() const { return static_cast<Index>(texts_.size()); }
  /// Whether the vocabulary has a token for this single byte.
  bool has_byte(unsigned char byte) const { return bytes_[byte] >= 0; }
  /// The bytes of a token, possibly part of a character; the name of a special token.
  std::string text(Index token) const { return std::string(text_of(token)); }
  bool is_special(Index token) const { return special_.contains(token); }

  /// The tokens of a text. `special`: whether names of special tokens in it become those tokens;
  /// they are looked for before the added tokens, which are always found.
  std::vector<Index> encode(std::string_view text,
                            SpecialTokens special = SpecialTokens::as_text) const;
  /// The bytes of the tokens, names of special ones included; they may begin or end inside a
  /// character. Throws InvalidArgument for a number outside the vocabulary.
  std::string decode(const OwnedArray<Index>& tokens) const;

 private:
  std::string_view text_of(Index token) const;

  void encode_piece(std::string_view piece, std::vector<Index>& tokens) const;

  void read_texts(const TextList& tokens);

  void read_special(const BytePairVocabulary& source, const Vocabulary& vocabulary);

  void read_merges(TextList texts, const Vocabulary& vocabulary);

  PreTokenizer pre_tokenizer_;
  detail::SpecialTokenFinder special_, added_, added_nfc_;
  TextList texts_;
  std::array<std::int32_t, 256> bytes_{};  // the token of each byte, or −1
  std::int32_t unknown_ = -1;
  bool joins_unknown_ = false, ignores_merges_ = false, nfc_ = false;
  detail::TokenFinder whole_;  // pieces that are tokens whatever the merges say
  detail::PairMerger merger_;
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/text/detail/byte_pair_encoding.inl>
#endif
