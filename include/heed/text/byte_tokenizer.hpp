// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// A token for each byte, 0 to 255: any text, no vocabulary.
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

}  // namespace heed
