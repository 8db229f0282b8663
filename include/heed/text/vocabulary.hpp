// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/text_list.hpp>

namespace heed {

/// The texts of tokens, by number and back.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Throws InvalidArgument when a text stands twice.
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
  /// The text of a token; InvalidArgument when there is none of that number.
  std::string_view text(Index token) const {
    if (token < 0 || token >= size()) throw_invalid_argument("token ", token, " of ", size());
    return tokens_[static_cast<std::size_t>(token)];
  }

 private:
  TextList tokens_;
  std::vector<std::uint32_t> order_;
};

}  // namespace heed
