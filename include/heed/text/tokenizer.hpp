// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>

namespace heed {

/// A class that turns text into token numbers and back. Numbers run from 0 to vocab_size() − 1;
/// decode throws InvalidArgument for any other.
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

  std::vector<Index> encode(std::string_view text) const {
    std::vector<Index> tokens;
    tokens.reserve(text.size());
    for (const char letter : text) tokens.push_back(static_cast<unsigned char>(letter));
    return tokens;
  }
  std::string decode(std::span<const Index> tokens) const {
    std::string text;
    text.reserve(tokens.size());
    for (const Index token : tokens) {
      if (token < 0 || token > 255) throw_invalid_argument("decode: token ", token, " is no byte");
      text += static_cast<char>(token);
    }
    return text;
  }
};

/// One token per distinct character of a text, in the order of their codes.
class CharacterTokenizer {
 public:
  /// A vocabulary of the characters in `text`. Throws InvalidArgument for text that is not UTF-8.
  explicit CharacterTokenizer(std::string_view text) {
    std::vector<bool> seen(0x110000);
    for_each(text, [&](char32_t code, std::size_t) { seen[code] = true; });
    for (char32_t code = 0; code < seen.size(); ++code) {
      if (seen[code]) characters_.push_back(code);
    }
  }

  Index vocab_size() const { return static_cast<Index>(characters_.size()); }
  /// All characters of the vocabulary; a tokenizer built from them is equal to this one.
  std::string characters() const {
    std::string text;
    for (const char32_t code : characters_) append_utf8(text, code);
    return text;
  }

  /// Throws InvalidArgument, with the character and its byte offset, for a character outside the
  /// vocabulary.
  std::vector<Index> encode(std::string_view text) const {
    std::vector<Index> tokens;
    for_each(text, [&](char32_t code, std::size_t at) {
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
  std::string decode(std::span<const Index> tokens) const {
    std::string text;
    for (const Index token : tokens) {
      if (token < 0 || token >= vocab_size()) {
        throw_invalid_argument("decode: token ", token, " of ", vocab_size());
      }
      append_utf8(text, characters_[static_cast<std::size_t>(token)]);
    }
    return text;
  }

 private:
  template <class Visit>
  static void for_each(std::string_view text, const Visit& visit) {
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Character next = decode_utf8(text, at);
      if (!next.valid) throw_invalid_argument("characters: byte ", at, " is not UTF-8");
      visit(next.code, at);
      at += next.size;
    }
  }

  std::vector<char32_t> characters_;
};

}  // namespace heed
