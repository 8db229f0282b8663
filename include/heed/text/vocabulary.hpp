// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>

namespace heed {

/// The texts of all tokens by number, and the number of a text.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Throws InvalidArgument for duplicate texts.
  explicit Vocabulary(TextList tokens) : tokens_(std::move(tokens)) {
    if (tokens_.size() > 0x7fffffff) throw_invalid_argument("vocabulary: too many tokens");
    order_.resize(tokens_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return tokens_[a] < tokens_[b]; });
    for (std::size_t i = 1; i < order_.size(); ++i) {
      if (tokens_[order_[i]] == tokens_[order_[i - 1]]) {
        throw_invalid_argument("vocabulary: ", quote(tokens_[order_[i]]), " twice, as token ",
                               std::min(order_[i], order_[i - 1]), " and ",
                               std::max(order_[i], order_[i - 1]));
      }
    }
  }

  Index size() const { return static_cast<Index>(tokens_.size()); }
  /// The number of the token with that text, or −1.
  Index find(std::string_view text) const {
    const auto found = std::lower_bound(
        order_.begin(), order_.end(), text,
        [&](std::uint32_t i, std::string_view wanted) { return tokens_[i] < wanted; });
    return found != order_.end() && tokens_[*found] == text ? static_cast<Index>(*found) : -1;
  }
  const TextList& texts() const { return tokens_; }
  /// The text of a token. Throws InvalidArgument for an unknown number.
  std::string_view text(Index token) const {
    if (token < 0 || token >= size()) throw_invalid_argument("token ", token, " of ", size());
    return tokens_[static_cast<std::size_t>(token)];
  }

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
  SpecialTokenFinder(const TextList& texts, std::span<const Index> special) {
    tokens_.reserve(special.size());
    for (const Index token : special) {
      const auto at = static_cast<std::uint32_t>(token);
      if (!texts[at].empty()) tokens_.push_back(at);
    }
    by_name_ = tokens_;
    std::sort(tokens_.begin(), tokens_.end());
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return texts[a] < texts[b]; });
  }

  bool contains(Index token) const {
    return std::binary_search(tokens_.begin(), tokens_.end(), token);
  }

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
  const std::uint32_t* longest(const TextList& texts, std::string_view text) const {
    const std::uint32_t* best = nullptr;
    auto begin = by_name_.begin(), end = by_name_.end();
    for (std::size_t length = 1; begin != end && length <= text.size(); ++length) {
      const auto letter = static_cast<unsigned char>(text[length - 1]);
      const auto at = [&](std::uint32_t token) {
        return static_cast<unsigned char>(texts[token][length - 1]);
      };
      begin = std::partition_point(begin, end, [&](std::uint32_t token) {
        return texts[token].size() < length || at(token) < letter;
      });
      end = std::partition_point(begin, end,
                                 [&](std::uint32_t token) { return at(token) == letter; });
      if (begin != end && texts[*begin].size() == length) best = &*begin;
    }
    return best;
  }

  std::vector<std::uint32_t> by_name_, tokens_;  // tokens_ is ascending
};

}  // namespace detail
}  // namespace heed
