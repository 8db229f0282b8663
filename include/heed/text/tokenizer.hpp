// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/text.hpp>

namespace heed {

/// A class that turns text into token numbers and back. Numbers run from 0 to vocab_size() − 1;
/// decode throws InvalidArgument for any other. heed's own decode any list of integers.
template <class X>
concept Tokenizer = requires(const X& tokenizer, std::string_view text,
                             std::span<const Index> tokens) {
  { tokenizer.encode(text) } -> std::same_as<std::vector<Index>>;
  { tokenizer.decode(tokens) } -> std::same_as<std::string>;
  { tokenizer.vocab_size() } -> std::same_as<Index>;
};

/// One token per byte, 0 to 255: for any text, without a vocabulary.
class ByteTokenizer {
 public:
  Index vocab_size() const { return 256; }

  std::vector<Index> encode(std::string_view text) const;
  std::string decode(const OwnedArray<Index>& tokens) const;
};

/// One token per distinct character of a text, in the order of their codes.
class CharacterTokenizer {
 public:
  /// A vocabulary of the characters in `text`. Throws InvalidArgument for text that is not UTF-8.
  explicit CharacterTokenizer(std::string_view text);

  Index vocab_size() const { return static_cast<Index>(characters_.size()); }
  /// All characters of the vocabulary; a tokenizer built from them is equal to this one.
  std::string characters() const;

  /// Throws InvalidArgument, with the byte offset, for a character outside the vocabulary and for
  /// text that is not UTF-8.
  std::vector<Index> encode(std::string_view text) const;
  std::string decode(const OwnedArray<Index>& tokens) const;

 private:
  std::vector<char32_t> characters_;
};

namespace detail {

/// Finds tokens by their text. Stores numbers only; every call gets the texts of all tokens.
class TokenFinder {
 public:
  TokenFinder() = default;
  TokenFinder(const TextList& texts, std::vector<std::uint32_t> tokens);

  /// The token with that text, or −1.
  std::int32_t find(const TextList& texts, std::string_view text) const;
  /// All tokens in the order of their texts.
  const std::vector<std::uint32_t>& by_text() const { return tokens_; }

 private:
  std::vector<std::uint32_t> tokens_;
};

}  // namespace detail

/// The texts of all tokens by number, and the number of a text.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Throws InvalidArgument for duplicate texts.
  explicit Vocabulary(TextList tokens);

  Index size() const { return static_cast<Index>(tokens_.size()); }
  /// The number of the token with that text, or −1.
  Index find(std::string_view text) const;
  const TextList& texts() const { return tokens_; }
  /// The text of a token. Throws InvalidArgument for an unknown number.
  std::string_view text(Index token) const;

 private:
  TextList tokens_;
  detail::TokenFinder finder_;
};

/// Whether the names of special tokens (`<|im_start|>`, `[MASK]`) in a text are read as those
/// tokens. The default is `as_text`: untrusted text must not be able to write special tokens.
enum class SpecialTokens { as_text, recognized };

namespace detail {

/// The bytes of white space at the beginning, or at the end, of a text.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

/// Finds the names of special tokens in a text: the first one, and at the same place the longest.
/// Stores token numbers only; every call gets the texts of all tokens.
class SpecialTokenFinder {
 public:
  SpecialTokenFinder() = default;
  /// `special` holds token numbers; a token with an empty text is never found. Those of `before`
  /// and `after` take the white space on that side of their names.
  SpecialTokenFinder(const TextList& texts, std::span<const Index> special,
                     std::span<const Index> before = {}, std::span<const Index> after = {});

  bool contains(Index token) const;

  /// Calls piece(text) and token(number) in the order of `text`; piece(text) alone where special
  /// tokens are not recognized.
  template <class Piece, class Token>
  void split(const TextList& texts, std::string_view text, const Piece& piece, const Token& token,
             SpecialTokens special = SpecialTokens::recognized) const {
    if (special == SpecialTokens::as_text || tokens_.empty()) return piece(text);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::uint32_t* found = longest(texts, text, at);
      if (found == nullptr) {
        ++at;
        continue;
      }
      auto between = text.substr(begin, at - begin);
      if (has(before_, *found)) between.remove_suffix(trailing_space(between));
      if (!between.empty()) piece(between);
      token(static_cast<Index>(*found));
      at += texts[*found].size();
      if (has(after_, *found)) at += leading_space(text.substr(at));
      begin = at;
    }
    if (begin < text.size()) piece(text.substr(begin));
  }

 private:
  /// The longest name at `at` in `text`.
  const std::uint32_t* longest(const TextList& texts, std::string_view text, std::size_t at) const {
    if (!begins_[static_cast<unsigned char>(text[at])]) return nullptr;
    return longest(texts, text.substr(at));
  }
  /// The longest name at the beginning of `text`, by binary search byte by byte.
  const std::uint32_t* longest(const TextList& texts, std::string_view text) const;

  using Tokens = std::vector<std::uint32_t>;
  static bool has(const Tokens& ascending, Index token);

  Tokens by_name_;
  Tokens tokens_, before_, after_;     // ascending
  std::array<bool, 256> begins_ = {};  // whether a name begins with each byte
};

}  // namespace detail

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/text/detail/tokenizer.inl>
#endif
