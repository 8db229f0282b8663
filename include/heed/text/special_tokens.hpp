// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/text_list.hpp>

namespace heed {

/// Whether names of special tokens (`<|im_start|>`, `[MASK]`) in a text mean the tokens. Text from
/// strangers must not be able to say them, hence `as_text` by default.
enum class SpecialTokens { as_text, recognized };

namespace detail {

/// Finds the names of special tokens in a text: the first, and of those that begin there the
/// longest. Keeps their numbers alone; the texts of all tokens are given with every call.
class SpecialTokenFinder {
 public:
  SpecialTokenFinder() = default;
  /// `special` are numbers of texts; one without text is never found.
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

  /// Calls piece(text) and token(number) in the order of the text.
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
  /// The longest name that `text` begins with, by narrowing the names down letter by letter.
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

  std::vector<std::uint32_t> by_name_, tokens_;  // the latter ascending
};

}  // namespace detail
}  // namespace heed
