// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <heed/core/utf8.hpp>

namespace heed::detail {

/// The letters by which GPT-2's vocabulary writes bytes, so that every token is visible text: bytes
/// that print stand for themselves, the others, in order, for U+0100 and on (a space is "Ġ").
class ByteLetters {
 public:
  ByteLetters() {
    bytes_.fill(-1);
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool prints = (byte > ' ' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
      letters_[byte] = prints ? byte : next++;
      bytes_[letters_[byte]] = static_cast<std::int16_t>(byte);
    }
  }

  std::string write(std::string_view bytes) const {
    std::string letters;
    for (const char byte : bytes) append_utf8(letters, letters_[static_cast<unsigned char>(byte)]);
    return letters;
  }
  /// The bytes that the letters stand for; nothing where a letter stands for none.
  std::optional<std::string> read(std::string_view letters) const {
    std::string bytes;
    bytes.reserve(letters.size());  // growing step by step would take three times as much
    for (std::size_t at = 0; at < letters.size();) {
      const Utf8Character next = decode_utf8(letters, at);
      if (!next.valid || next.code >= bytes_.size() || bytes_[next.code] < 0) return std::nullopt;
      bytes += static_cast<char>(bytes_[next.code]);
      at += next.size;
    }
    return bytes;
  }

 private:
  std::array<char32_t, 256> letters_;
  std::array<std::int16_t, 0x144> bytes_;  // of each letter, or −1
};

}  // namespace heed::detail
