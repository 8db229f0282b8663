// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/text/tokenizer.hpp>, which includes this file.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/text.hpp>
#include <heed/text/unicode.hpp>

namespace heed {

namespace detail {

HEED_INLINE TokenFinder::TokenFinder(const TextList& texts, std::vector<std::uint32_t> tokens)
    : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return texts[a] < texts[b]; });
}

HEED_INLINE std::int32_t TokenFinder::find(const TextList& texts, std::string_view text) const {
  const auto found = std::lower_bound(
      tokens_.begin(), tokens_.end(), text,
      [&](std::uint32_t token, std::string_view wanted) { return texts[token] < wanted; });
  return found != tokens_.end() && texts[*found] == text ? static_cast<std::int32_t>(*found) : -1;
}

}  // namespace detail

HEED_INLINE Vocabulary::Vocabulary(TextList tokens) : tokens_(std::move(tokens)) {
  if (tokens_.size() > 0x7fffffff) throw_invalid_argument("vocabulary: too many tokens");
  std::vector<std::uint32_t> all(tokens_.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
  finder_ = detail::TokenFinder(tokens_, std::move(all));
  const auto& order = finder_.by_text();
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (tokens_[order[i]] == tokens_[order[i - 1]]) {
      throw_invalid_argument("vocabulary: ", quote(tokens_[order[i]]), " twice, as token ",
                             std::min(order[i], order[i - 1]), " and ",
                             std::max(order[i], order[i - 1]));
    }
  }
}

HEED_INLINE Index Vocabulary::find(std::string_view text) const {
  return finder_.find(tokens_, text);
}

HEED_INLINE std::string_view Vocabulary::text(Index token) const {
  if (token < 0 || token >= size()) throw_invalid_argument("token ", token, " of ", size());
  return tokens_[static_cast<std::size_t>(token)];
}

namespace detail {

HEED_INLINE std::size_t leading_space(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const Utf8Character next = decode_utf8(text, end);
    if (!unicode::classes_of(next.code).space()) break;
    end += next.size;
  }
  return end;
}
HEED_INLINE std::size_t trailing_space(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    std::size_t at = begin - 1;  // of the last character: its first byte
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
    const Utf8Character last = decode_utf8(text, at);
    if (at + last.size != begin || !unicode::classes_of(last.code).space()) break;
    begin = at;
  }
  return text.size() - begin;
}

HEED_INLINE SpecialTokenFinder::SpecialTokenFinder(const TextList& texts,
                                                   std::span<const Index> special,
                                                   std::span<const Index> before,
                                                   std::span<const Index> after) {
  const auto with_names = [&](std::span<const Index> numbers) {
    Tokens tokens;
    tokens.reserve(numbers.size());
    for (const Index token : numbers) {
      const auto at = static_cast<std::uint32_t>(token);
      if (!texts[at].empty()) tokens.push_back(at);
    }
    std::sort(tokens.begin(), tokens.end());
    return tokens;
  };
  tokens_ = with_names(special);
  before_ = with_names(before);
  after_ = with_names(after);
  by_name_ = tokens_;
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return texts[a] < texts[b]; });
  for (const std::uint32_t token : tokens_) {
    begins_[static_cast<unsigned char>(texts[token].front())] = true;
  }
}

HEED_INLINE bool SpecialTokenFinder::contains(Index token) const { return has(tokens_, token); }
HEED_INLINE bool SpecialTokenFinder::has(const Tokens& ascending, Index token) {
  return std::binary_search(ascending.begin(), ascending.end(), token);
}

HEED_INLINE const std::uint32_t* SpecialTokenFinder::longest(const TextList& texts,
                                                             std::string_view text) const {
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
    end =
        std::partition_point(begin, end, [&](std::uint32_t token) { return at(token) == letter; });
    if (begin != end && texts[*begin].size() == length) best = &*begin;
  }
  return best;
}

/// Calls visit(character, its first byte) for each character of a text.
template <class Visit>
void for_each_character(std::string_view text, const Visit& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    if (!next.valid) throw_invalid_argument("characters: byte ", at, " is not UTF-8");
    visit(next.code, at);
    at += next.size;
  }
}

}  // namespace detail

HEED_INLINE std::vector<Index> ByteTokenizer::encode(std::string_view text) const {
  std::vector<Index> tokens;
  tokens.reserve(text.size());
  for (const char letter : text) tokens.push_back(static_cast<unsigned char>(letter));
  return tokens;
}

HEED_INLINE std::string ByteTokenizer::decode(const OwnedArray<Index>& tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const Index token : tokens) {
    if (token < 0 || token > 255) throw_invalid_argument("decode: token ", token, " is no byte");
    text += static_cast<char>(token);
  }
  return text;
}

HEED_INLINE CharacterTokenizer::CharacterTokenizer(std::string_view text) {
  std::vector<std::uint64_t> seen(0x110000 / 64);  // a bit per character
  detail::for_each_character(
      text, [&](char32_t code, std::size_t) { seen[code / 64] |= std::uint64_t{1} << code % 64; });
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (std::uint64_t bits = seen[i]; bits != 0; bits &= bits - 1) {
      characters_.push_back(static_cast<char32_t>(64 * i) +
                            static_cast<char32_t>(std::countr_zero(bits)));
    }
  }
}

HEED_INLINE std::string CharacterTokenizer::characters() const {
  std::string text;
  for (const char32_t code : characters_) append_utf8(text, code);
  return text;
}

HEED_INLINE std::vector<Index> CharacterTokenizer::encode(std::string_view text) const {
  std::vector<Index> tokens;
  detail::for_each_character(text, [&](char32_t code, std::size_t at) {
    const auto found = std::lower_bound(characters_.begin(), characters_.end(), code);
    if (found == characters_.end() || *found != code) {
      std::string character;
      append_utf8(character, code);
      throw_invalid_argument("encode: byte ", at, ": ", quote(character),
                             " is not in the vocabulary");
    }
    tokens.push_back(found - characters_.begin());
  });
  return tokens;
}

HEED_INLINE std::string CharacterTokenizer::decode(const OwnedArray<Index>& tokens) const {
  std::string text;
  for (const Index token : tokens) {
    if (token < 0 || token >= vocab_size()) {
      throw_invalid_argument("decode: token ", token, " of ", vocab_size());
    }
    append_utf8(text, characters_[static_cast<std::size_t>(token)]);
  }
  return text;
}

}  // namespace heed
