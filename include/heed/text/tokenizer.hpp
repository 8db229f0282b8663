// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

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

  std::vector<Index> encode(std::string_view text) const;
  std::string decode(std::span<const Index> tokens) const;
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
  std::string decode(std::span<const Index> tokens) const;

 private:
  std::vector<char32_t> characters_;
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/text/detail/tokenizer.inl>
#endif
