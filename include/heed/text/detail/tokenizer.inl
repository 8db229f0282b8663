// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/text/tokenizer.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/text.hpp>

namespace heed {

namespace detail {

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

HEED_INLINE std::string ByteTokenizer::decode(std::span<const Index> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const Index token : tokens) {
    if (token < 0 || token > 255) throw_invalid_argument("decode: token ", token, " is no byte");
    text += static_cast<char>(token);
  }
  return text;
}

HEED_INLINE CharacterTokenizer::CharacterTokenizer(std::string_view text) {
  std::vector<bool> seen(0x110000);
  detail::for_each_character(text, [&](char32_t code, std::size_t) { seen[code] = true; });
  for (char32_t code = 0; code < seen.size(); ++code) {
    if (seen[code]) characters_.push_back(code);
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

HEED_INLINE std::string CharacterTokenizer::decode(std::span<const Index> tokens) const {
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
