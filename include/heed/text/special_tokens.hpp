// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>

namespace heed {

/// Whether names of special tokens (`<|im_start|>`, `[MASK]`) in a text mean the tokens. Text from
/// strangers must not be able to say them, hence `as_text` by default.
enum class SpecialTokens { as_text, recognized };

namespace detail {

/// Finds the names of special tokens in a text: the first, and of those that begin there the
/// longest.
class SpecialTokenFinder {
 public:
  SpecialTokenFinder() = default;
  explicit SpecialTokenFinder(std::vector<std::pair<std::string, Index>> names)
      : names_(std::move(names)) {
    std::erase_if(names_, [](const auto& name) { return name.first.empty(); });
    std::sort(names_.begin(), names_.end());
    for (const auto& name : names_) tokens_.push_back(name.second);
    std::sort(tokens_.begin(), tokens_.end());
  }

  bool contains(Index token) const {
    return std::binary_search(tokens_.begin(), tokens_.end(), token);
  }

  /// Calls piece(text) and token(number) in the order of the text.
  template <class Piece, class Token>
  void split(std::string_view text, const Piece& piece, const Token& token) const {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto* found = longest(text.substr(at));
      if (found == nullptr) {
        ++at;
        continue;
      }
      if (at > begin) piece(text.substr(begin, at - begin));
      token(found->second);
      at = begin = at + found->first.size();
    }
    if (begin < text.size()) piece(text.substr(begin));
  }

 private:
  /// The longest name that `text` begins with, by narrowing the names down letter by letter.
  const std::pair<std::string, Index>* longest(std::string_view text) const {
    const std::pair<std::string, Index>* best = nullptr;
    auto begin = names_.begin(), end = names_.end();
    for (std::size_t length = 1; begin != end && length <= text.size(); ++length) {
      const char letter = text[length - 1];
      const auto at = [&](const auto& name) {
        return static_cast<unsigned char>(name.first[length - 1]);
      };
      begin = std::partition_point(begin, end, [&](const auto& name) {
        return name.first.size() < length || at(name) < static_cast<unsigned char>(letter);
      });
      end = std::partition_point(begin, end, [&](const auto& name) {
        return at(name) == static_cast<unsigned char>(letter);
      });
      if (begin != end && begin->first.size() == length) best = &*begin;
    }
    return best;
  }

  std::vector<std::pair<std::string, Index>> names_;
  std::vector<Index> tokens_;  // their numbers, ascending
};

}  // namespace detail
}  // namespace heed
