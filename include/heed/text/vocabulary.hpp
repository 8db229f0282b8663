// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>

namespace heed {

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
  std::vector<std::uint32_t> order_;
};

/// Whether the names of special tokens (`<|im_start|>`, `[MASK]`) in a text are read as those
/// tokens. The default is `as_text`: untrusted text must not be able to write special tokens.
enum class SpecialTokens { as_text, recognized };

namespace detail {

/// Finds the names of special tokens in a text: the first one, and at the same place the longest.
/// Stores token numbers only; every call gets the texts of all tokens.
class SpecialTokenFinder {
 public:
  SpecialTokenFinder() = default;
  /// `special` holds token numbers; a token with an empty text is never found.
  SpecialTokenFinder(const TextList& texts, std::span<const Index> special);

  bool contains(Index token) const;

  /// Calls piece(text) and token(number) in the order of `text`.
  template <class Piece, class Token>
  void split(const TextList& texts, std::string_view text, const Piece& piece,
             const Token& token) const {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::uint32_t* found = longest(texts, text.substr(at));
      if (found == nullptr) {
        ++at;
        continue;
      }
      if (at > begin) piece(text.substr(begin, at - begin));
      token(static_cast<Index>(*found));
      at = begin = at + texts[*found].size();
    }
    if (begin < text.size()) piece(text.substr(begin));
  }

 private:
  /// The longest name at the beginning of `text`, by binary search byte by byte.
  const std::uint32_t* longest(const TextList& texts, std::string_view text) const;

  std::vector<std::uint32_t> by_name_, tokens_;  // tokens_ is ascending
};

}  // namespace detail
}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/text/detail/vocabulary.inl>
#endif
