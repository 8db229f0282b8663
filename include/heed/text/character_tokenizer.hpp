// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/utf8.hpp>

namespace heed {

/// A token for each character that a text holds, in the order of their codes.
class CharacterTokenizer {
 public:
  /// The characters of `text`, which must be UTF-8 (InvalidArgument).
  explicit CharacterTokenizer(std::string_view text) {
    std::vector<bool> seen(0x110000);
    for_each(text, [&](char32_t code, std::size_t) { seen[code] = true; });
    for (char32_t code = 0; code < seen.size(); ++code) {
      if (seen[code]) characters_.push_back(code);
    }
  }

  Index vocab_size() const { return static_cast<Index>(characters_.size()); }
  /// Every character once: a tokenizer made of this is the same one.
  std::string characters() const {
    std::string text;
    for (const char32_t code : characters_) append_utf8(text, code);
    return text;
  }

  /// Throws InvalidArgument, naming character and byte, when the vocabulary lacks one.
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
